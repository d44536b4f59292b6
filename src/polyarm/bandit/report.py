"""One HTML page with all that a bandit learnt; it needs no network and no other file."""

import base64
import html
import io
from typing import TYPE_CHECKING, Any

from polyarm.bandit.learnt import dropped_of
from polyarm.tables import to_html

if TYPE_CHECKING:
    from polyarm.bandit.bandit import Bandit

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
img { max-width: 100%; }
"""


def page(bandit: "Bandit", context: Any, evaluation: Any = None) -> str:
    """The page; densities and predictions are those in the given context."""
    settings, ledger = bandit.settings, bandit._ledger
    facts = (
        f"{bandit.n_decisions} decisions, {bandit.n_learnt} rewards learnt, {len(bandit.pending)} open, "
        f"{dropped_of(ledger)} dropped. Policy {settings.policy}, objective {settings.objective}, seed {settings.seed}."
    )
    parts = [f"<h1>What the bandit learnt</h1><p>{html.escape(facts)}</p>", _section("Arms", bandit.summary())]
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
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What the bandit learnt</title><style>{STYLE}</style>{''.join(parts)}</html>\n"
    )


def _section(title: str, shown: Any, note: str = "") -> str:
    said = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<h2>{html.escape(title)}</h2>{said}<div class=wide>{to_html(shown.table())}</div>"


def _picture(title: str, figure: Any) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    image = base64.b64encode(content.getvalue()).decode()
    return f'<h2>{html.escape(title)}</h2><img alt="{html.escape(title)}" src="data:image/png;base64,{image}">'
