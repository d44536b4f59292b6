"""Bugs that an audit planted and that slipped through; tests must go on catching them."""

from benchmarks.mutant_sites import Site

COMPONENT, GATING, MOVES, PREDICT, SHARED = (
    f"kernels/robust/{name}.py" for name in ("component", "gating", "moves", "predict", "shared")
)
PLANTED = (  # file, what stands there, what it becomes
    # the best arm is found by comparing with the first
    ("kernels/information.py", "mean[a] - mean[best] + draw[a] > draw[best]", "mean[a] - mean[0] + draw[a] > draw[0]"),
    # the prior of b does not know the unit
    (SHARED, "(prior.noise_rate / shared.reward_square + total)", "(prior.noise_rate + total)"),
    # tau is missing for a new component
    (GATING, "far, tau * shrink, used", "far, tau * shrink * (k >= 0), used"),
    # tau counts components instead of columns
    (GATING, "                    count += 1.0", "            count += 1.0"),
    # a fresh count loses the kept sums
    (COMPONENT, "T[COUNT, k] = T[kept, k]", "T[COUNT, k] = 0.0"),
    (COMPONENT, "T[SYY, k] = T[kept + 1, k]", "T[SYY, k] = 0.0"),
    (COMPONENT, "T[first + r, k] = T[kept + 2 + r, k]", "T[first + r, k] = 0.0"),
    # a lone reward's own noise variance
    (MOVES, "T[VAR, k0] if alone else suggest_noise(half, a, b, False, rng)", "suggest_noise(half, a, b, False, rng)"),
    # rho is drawn with the old lam2
    (SHARED, "0.5 * within / shared.arm_var[g]", "0.5 * within * features.unit[2 * g] / features.arm_var[2 * g]"),
    # the common centre ignores the median
    (SHARED, "expected = shared.median if group_of(j, D, prior) == 1 else 0.0", "expected = 0.0"),
    # the second term of the blur
    (GATING, "(pure + mixed * blur) / spread", "pure / spread"),
    # the variance of the unseen part
    (PREDICT, "spread = v[k] if k < K else v[k] / (gamma + 1.0)", "spread = v[k]"),
    (PREDICT, "(1.0 if k < K else draw_squared_sticks(gamma, rng))", "1.0"),
)


def planted_site(text: str, before: str, after: str) -> Site:
    """The place of a planted bug in the text of its file; the text must hold it once."""
    if text.count(before) != 1:
        raise ValueError(f"text must hold it once, got {text.count(before)} times: {before}")
    start = text.index(before)
    end = start + len(before)
    first, last = text[:start].split("\n"), text[:end].split("\n")
    place = len(first), len(first[-1].encode()), len(last), len(last[-1].encode())
    return Site(*place, "planted", " ".join(before.split()), after)
