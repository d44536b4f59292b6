"""Parts of the site that are read from the files and the code, so that they cannot be out of date.

The navigation lists every page: those named in ORDER first, then whatever else lies in a folder.  A page writes
{{ api }}, {{ policies }}, {{ scenarios }} or {{ http }} where that part belongs.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ORDER = {
    "Tutorial": (
        "tutorial",
        ["first-bandit", "what-was-learnt", "late-rewards", "risk", "from-logs", "serving", "a-real-trial"],
    ),
    "How-to": ("how-to", ["put-a-bandit-to-work", "evaluate-from-logs", "run-the-service", "compare-policies"]),
    "Reference": ("reference", ["bandit", "api", "command-line", "http", "policies", "scenarios"]),
    "Explanation": ("explanation", ["why-not", "default-policy", "objectives", "engines", "evaluation"]),
    "Decisions": ("decisions", []),
}


def on_config(config: Any) -> Any:
    """Say which pages there are, and in which order."""
    docs = Path(config["docs_dir"])
    nav: list[dict[str, Any]] = [{"Home": "index.md"}]
    for title, (folder, first) in ORDER.items():
        found = sorted(path.stem for path in (docs / folder).glob("*.md"))
        names = [name for name in first if name in found] + [name for name in found if name not in first]
        nav.append({title: [f"{folder}/{name}.md" for name in names]})
    nav.insert(-1, {"Gallery": ["gallery.md", {"The paper's tables and figures": "reproduction.md"}]})
    config["nav"] = nav
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the tables, and set lists and tables apart from the text before them."""
    for name, table in TABLES.items():
        mark = "{{ " + name + " }}"
        if mark in markdown:
            markdown = markdown.replace(mark, table())
    return set_apart(markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Let the keyboard reach code that is wider than the page: what scrolls can have the focus."""
    return html.replace("<pre><span></span><code>", '<pre tabindex="0"><span></span><code>')


def set_apart(markdown: str) -> str:
    """A blank line around every list, table and block of code: other readers of Markdown need none."""
    lines: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        before = lines[-1] if lines else ""
        begins = next((mark for mark in ("* ", "- ", "1. ", "|") if line.startswith(mark)), None)
        goes_on = not before or before[0] == " " or before.startswith(begins or "")
        after_code = before.startswith("```") and not fenced and line
        lines += [*([""] if after_code or not (fenced or goes_on) else []), line]
        fenced ^= line.startswith("```")
    return "\n".join(lines) + "\n"


PARTS = {
    "The bandit": ("bandit",),
    "Evaluation from logs": ("evaluation",),
    "Policies": ("policies", "choosing"),
    "Engines": ("inference",),
    "Models": ("models", "regressor"),
    "Scenarios and comparisons": ("environments", "experiments"),
    "Protocols, types and errors": ("types", "errors"),
}


def api() -> str:
    """Every public name, by the part of the library that it belongs to."""
    from polyarm import _HOMES

    lines: list[str] = []
    left = dict(_HOMES)
    for title, homes in PARTS.items():
        names = sorted(name for name, home in left.items() if home.partition(".")[0] in homes)
        lines += [f"## {title}", "", *(f"::: polyarm.{left.pop(name)}.{name}\n" for name in names)]
    if left:
        lines += ["## Further names", "", *(f"::: polyarm.{home}.{name}\n" for name, home in left.items())]
    return "\n".join(lines)


def policies() -> str:
    """Every policy with what it is, every option and its default."""
    from polyarm.policies.presets import PRESETS, network_names

    parts = [_policy(name, build) for name, build in PRESETS.items()]
    parts += [_network(name) for name in network_names()]
    return "\n".join(parts)


def _policy(name: str, build: Callable[..., Any]) -> str:
    if isinstance(build, partial):
        base = build.func.__name__
        return f"## {name}\n\nAs [`{base}`](#{base}), with `explore='information'`.\n"
    rows = [(option, _plain(default)) for option, default in options(build)]
    passed_on = [f"`**{p.name}`" for p in inspect.signature(build).parameters.values() if p.kind is p.VAR_KEYWORD]
    text = inspect.cleandoc(build.__doc__ or "")
    more = (
        f"\nFurther options are handed on as {passed_on[0]}: {HANDED_ON.get(name, 'see its description.')}\n"
        if passed_on
        else ""
    )
    return f"## {name}\n\n{text}\n\n{_options(rows)}{more}"


HANDED_ON = {
    "nonparametric": "the settings of [`RobustMixture`](api.md#polyarm.models.RobustMixture).",
    "dirichlet": "the settings of the engine, for example of [`GibbsEngine`](api.md#polyarm.inference.GibbsEngine).",
    "pitman-yor": "the options of [`dirichlet`](#dirichlet).",
    "hierarchical": "the settings of [`HierarchicalEngine`](api.md#polyarm.inference.HierarchicalEngine).",
    "linear-showdown": "the options of [`linear`](#linear).",
    "gaussian": "the options of [`linear`](#linear).",
}


def _network(name: str) -> str:
    from polyarm.neural.presets import options_of

    names = ", ".join(f"`{option}`" for option in options_of(name))
    about = "A learned baseline (extra `neural`): see [baselines](../explanation/baselines.md)."
    return f"## {name}\n\n{about}\n\nOptions: {names}.\n"


def _options(rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    lines = [f"| `{option}` | {default} |" for option, default in rows]
    return "\n".join(["| option | default |", "|---|---|", *lines]) + "\n"


def options(build: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Names and defaults of what a policy can be told."""
    return [
        (parameter.name, parameter.default)
        for parameter in inspect.signature(build).parameters.values()
        if parameter.name not in ("n_arms", "context_dim") and parameter.kind is not parameter.VAR_KEYWORD
    ]


def _plain(default: Any) -> str:
    return "required" if default is inspect.Parameter.empty else f"`{default!r}`"


def scenarios() -> str:
    """Every scenario with its size."""
    from polyarm.environments.presets import REAL, make_scenario, scenario_names

    rows = ["| scenario | arms | columns | usual horizon |", "|---|---|---|---|"]
    for name in scenario_names():
        if name.partition("/")[0] in REAL:
            rows.append(f"| `{name}` | from its data | | |")
            continue
        made = make_scenario(name)
        rows.append(f"| `{name}` | {made.environment.n_arms} | {made.environment.context_dim} | {made.horizon} |")
    return "\n".join(rows)


def http() -> str:
    """Every route of the service, from its OpenAPI description."""
    from polyarm.service.openapi import description

    document = description()
    parts = ["| method | path | what it does | scope | body | answers |", "|---|---|---|---|---|---|"]
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            scope = ", ".join(scope for need in told.get("security", []) for scope in need["key"]) or "-"
            body = _kind(told["requestBody"]["content"]["application/json"]["schema"]) if "requestBody" in told else "-"
            good = [f"{s} {_content(a)}" for s, a in told["responses"].items() if int(s) < 400]
            parts.append(f"| {method.upper()} | `{path}` | {told['summary']} | {scope} | {body} | {', '.join(good)} |")
    parts += ["", "## Messages", *(_message(*item) for item in sorted(document["components"]["schemas"].items()))]
    return "\n".join(parts)


def http_errors() -> str:
    """Every status of an error."""
    from polyarm.service.openapi import ERRORS

    return "\n".join(f"| {status} | {text} |" for status, text in ERRORS.items())


def _content(answer: Mapping[str, Any]) -> str:
    content = answer.get("content", {}).get("application/json")
    return _kind(content["schema"]) if content else ""


def _message(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        (field, _kind(told), "required" if field in needed else f"`{told.get('default')!r}`")
        for field, told in schema.get("properties", {}).items()
    ]
    table = ["| field | type | default |", "|---|---|---|", *(f"| `{a}` | {b} | {c} |" for a, b, c in rows)]
    return "\n".join([f"### {name}", "", schema.get("description", ""), "", *(table if rows else [])]) + "\n"


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if schema.get("items") else "list"
    return str(schema.get("type", "any"))


TABLES: dict[str, Callable[[], str]] = {
    "api": api,
    "policies": policies,
    "scenarios": scenarios,
    "http": http,
    "http errors": http_errors,
}
