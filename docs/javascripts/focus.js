// wide tables scroll in a wrapper that the theme puts around them: let the keyboard reach it
document$.subscribe(() => document.querySelectorAll(".md-typeset__scrollwrap").forEach(wrapper => { wrapper.tabIndex = 0 }))
