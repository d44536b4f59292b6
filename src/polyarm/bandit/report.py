"""One HTML page with all that a bandit learnt; it needs no network and no other file."""

import html
from typing import TYPE_CHECKING, Any

from polyarm import pages
from polyarm.bandit.learnt import dropped_of

if TYPE_CHECKING:
    from polyarm.bandit.bandit import Bandit


def page(bandit: "Bandit", context: Any, evaluation: Any = None) -> str:
    """The page; densities and predictions are those in the given context."""
    settings, ledger = bandit.settings, bandit._ledger
    facts = (
        f"{bandit.n_decisions} decisions, {bandit.n_learnt} rewards learnt, {len(bandit.pending)} open, "
        f"{dropped_of(ledger)} dropped. Policy {settings.policy}, objective {settings.objective}, seed {settings.seed}."
    )
    parts = [f"<p>{html.escape(facts)}</p>", _section("Arms", bandit.summary())]
    if hasattr(bandit._learner.policy, "engine"):
        where = "" if context is None else ", ".join(f"{name} = {value}" for name, value in context.items())
        parts.append(_section("In one context" if where else "Prediction", bandit.predict(context), where))
        parts.append(_picture("What each arm may pay", bandit.plot_densities(context)))
        parts.append(_picture("Over time", bandit.plot_history()))
        if settings.schema.names:
            parts.append(_picture("Effects of the columns", bandit.plot_effects(context)))
    else:
        parts.append(_picture("Over time", bandit.plot_history()))
    if evaluation is not None:
        parts.append(f"<h2>What others would have earned</h2><div class=wide>{evaluation.html()}</div>")
    return pages.page("What the bandit learnt", "".join(parts))


def _section(title: str, shown: Any, note: str = "") -> str:
    said = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<h2>{html.escape(title)}</h2>{said}{pages.table(shown.table())}"


def _picture(title: str, figure: Any) -> str:
    return f"<h2>{html.escape(title)}</h2>{pages.image(title, figure)}"
