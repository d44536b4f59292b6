"""Posterior of an arm's mean reward in one context, given the seating and the scales that the arms share.

Given the noise variances everything is Gaussian: w0 ~ N(mu + J e, (F F')^-1 + J (C C')^-1 J') (common_centre.py) and,
given w0, x'w_k = x'V_k Sxy_k/s2_k + a_k'w0 plus N(0, x'V_k x) with a_k = Q V_k x.  A component nobody has seen has
x'w = x'w0 plus N(0, x'Rx).

m  (K+1,)     E[x'w_k]: the last entry is for the unseen
v  (K+1,)     variance of x'w_k given w0: x'V_k x, and x'Rx for one unseen component
G  (2D, K+1)  columns F^-1 a_k and, below, C^-1 J'a_k, so that G_j'G_k is the covariance that x'w_j and x'w_k owe to w0;
              the lower half is what arms have in common, and is missing where c is taken as drawn
c  (K+1,)     n_1, ..., n_K, gamma, each times the component's density at x, scaled to the same sum (gating.py)
p             weights ~ Dirichlet(c); the unseen part is a whole Dirichlet process
centres[arm]  (D, D + 2): F (lower triangle), mu, and w0 as last drawn
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.lanes import LANES, load, splat, store, where_less, whole
from polyarm.kernels.mixture.means import n_held
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.common_centre import Common, common_of
from polyarm.kernels.robust.component import MEAN, VAR
from polyarm.kernels.robust.gating import local_counts
from polyarm.kernels.robust.records import Arms, Books, Features, arms_of, n_features
from polyarm.kernels.robust.units import with_intercept
from polyarm.kernels.student import student_density
from polyarm.types import Array, Rng

TAIL = 1e-3  # stick-breaking stops when less than this mass remains; the remainder is one atom
MAX_STICKS = 1000
ABREAST = 16  # contexts that go through the matrices together
TIE_INFLATION = 1.4  # the mean of an arm in one context is known less well than over all contexts


class View(NamedTuple):
    """One arm in one context: m, v, c and G of its components in use and of the unseen; room for a vector; features."""

    m: Array
    v: Array
    c: Array
    G: Array
    g: Array
    x: Array


@kernel
def blank_view(n: int, D: int, common: Common) -> View:
    """Room for n components, the unseen among them."""
    rows, H = np.empty((3, whole(n))), D + common.shift.shape[0]
    return View(rows[0], rows[1], rows[2], np.zeros((H, whole(n))), np.empty(H), np.empty(D))


@kernel
def view_for(arms: Arms, common: Common) -> View:
    """Room for every arm's components."""
    return blank_view(arms.components.shape[2] + 1, n_features(arms), common)


@inlined
def locate_used(T: Array, k: int, centre: Array, features: Features, view: View) -> None:
    """Write m, v and a of components k to k + LANES - 1; a stands where G will."""
    a, x, D = view.G, view.x, features.unit.shape[0]
    mean, square = splat(0.0), splat(0.0)
    p = MEAN + D
    for i in range(D):
        xi, Vx = x[i], splat(0.0)
        mean += xi * load(T, MEAN + i, k)
        for j in range(i):
            V = load(T, p, k)
            Vx += V * x[j]
            store(load(a, j, k) + V * xi, a, j, k)
            p += 1
        store(Vx + load(T, p, k) * xi, a, i, k)
        p += 1
    for i in range(D):
        Vx = load(a, i, k)
        square += Vx * x[i]
        QVx = Vx / features.part_var[i]
        mean += QVx * (centre[i, D] - centre[i, D + 1])  # U was computed for w0 as last drawn
        store(QVx, a, i, k)
    store(mean, view.m, k)
    store(where_less(0.0, square, square, 0.0), view.v, k)


@inlined
def locate_given_c(T: Array, K: int, centre: Array, features: Features, view: View) -> None:
    """Write m, v and F^-1 a of every component in use and of the unseen, LANES components at a time, as if c were known
    to be what was drawn.
    """
    m, v, G, x, D = view.m, view.v, view.G, view.x, features.unit.shape[0]
    for k in range(0, K, LANES):
        locate_used(T, k, centre, features, view)
    m[K], v[K] = 0.0, 0.0
    for i in range(D):
        m[K] += x[i] * centre[i, D]
        v[K] += x[i] * x[i] * features.part_var[i]
        G[i, K] = x[i]
    for k in range(0, K + 1, LANES):
        solve_columns(centre, G, 0, k)


@inlined
def solve_columns(F: Array, G: Array, first: int, k: int) -> None:
    """Replace rows of G from the first on by F^-1 times them, in columns k to k + LANES - 1."""
    for i in range(F.shape[0]):
        t = load(G, first + i, k)
        for j in range(i):
            t -= F[i, j] * load(G, first + j, k)
        store(t / F[i, i], G, first + i, k)


@inlined
def integrate_c(K: int, centre: Array, L: Array, common: Common, view: View) -> None:
    """Write C^-1 J'a, and move m by a'J e, of every component in use and of the unseen."""
    m, G, D = view.m, view.G, L.shape[0]
    for k in range(0, K + 1, LANES):
        mean = load(m, k)
        for i in range(D - 1, -1, -1):
            t = load(G, i, k)
            for j in range(i + 1, D):
                t -= centre[j, i] * load(G, D + j, k)
            store(t / centre[i, i], G, D + i, k)
        for i in range(D):
            t = load(G, D + i, k) / L[i]
            mean += t * common.shift[i]
            store(t, G, D + i, k)
        store(mean, m, k)
        solve_columns(common.factor, G, D, k)


@inlined
def locate(T: Array, K: int, centre: Array, features: Features, common: Common, view: View) -> None:
    """Write m, v and G of every component in use and of the unseen."""
    locate_given_c(T, K, centre, features, view)
    if common.shift.shape[0] > 0:
        integrate_c(K, centre, features.arm_var, common, view)


@inlined
def squared_length(g: Array) -> float:
    """Sum of squares."""
    total = 0.0
    for i in range(g.shape[0]):
        total += g[i] * g[i]
    return total


@inlined
def in_common(g: Array, h: Array) -> float:
    """Product of the lower half of g, if there is one, with the draw h that all arms have in common."""
    total, D = 0.0, g.shape[0] - h.shape[0]
    for i in range(h.shape[0]):
        total += g[D + i] * h[i]
    return total


@inlined
def draw_squared_sticks(gamma: float, rng: Rng) -> float:
    """Sum of the squared weights of a Dirichlet process."""
    left, total = 1.0, 0.0
    for _ in range(MAX_STICKS):
        if left < TAIL:
            break
        part = left * rng.beta(1.0, gamma)
        total += part * part
        left -= part
    return total + left * left


@inlined
def draw_mean(view: View, K: int, gamma: float, h: Array, rng: Rng) -> float:
    """A draw of the arm's mean reward given a draw of what the arms have in common, h ~ N(0, I)."""
    m, v, c, G, g, x = view
    D = x.shape[0]
    for i in range(g.shape[0]):
        g[i] = 0.0
    total, mean, own = 0.0, 0.0, 0.0
    for k in range(K + 1):
        p = rng.standard_gamma(c[k])
        total += p
        mean += p * m[k]
        own += p * p * v[k] * (1.0 if k < K else draw_squared_sticks(gamma, rng))
        for i in range(g.shape[0]):
            g[i] += p * G[i, k]
    if total <= 0.0:  # only an empty arm whose concentration is nearly 0
        return m[K] + in_common(G[:, K], h) + math.sqrt(v[K] + squared_length(G[:D, K])) * rng.standard_normal()
    return (mean + in_common(g, h) + math.sqrt(own + squared_length(g[:D])) * rng.standard_normal()) / total


@inlined
def find_moments(view: View, K: int, gamma: float) -> tuple[float, float]:
    """Mean and standard deviation of the arm's mean reward: the moments of `draw_mean`.

    With A = sum c and P = E[p]:  A/(A+1) (sum P^2 v + |sum P G|^2) + (sum P (v + |G|^2 + m^2) - mean^2) / (A+1);
    the unseen part's v is x'Rx / (gamma + 1), the variance of the mean of a Dirichlet process.
    """
    m, v, c, G, g, _ = view
    for i in range(g.shape[0]):
        g[i] = 0.0
    total = 0.0
    for k in range(K + 1):
        total += c[k]
    mean, square, own, each = 0.0, 0.0, 0.0, 0.0
    for k in range(K + 1):
        p = c[k] / total
        spread = v[k] if k < K else v[k] / (gamma + 1.0)
        mean += p * m[k]
        own += p * p * spread
        each += p * (spread + squared_length(G[:, k]))
        for i in range(g.shape[0]):
            g[i] += p * G[i, k]
    for k in range(K + 1):
        p = c[k] / total
        square += p * (m[k] - mean) * (m[k] - mean)
    variance = (total * (own + squared_length(g)) + each + square) / (total + 1.0)
    return mean, math.sqrt(variance)


@inlined
def look_at(arms: Arms, arm: int, common: Common, view: View) -> None:
    """Write m, v, c and G of an arm for the features of the view."""
    T, K, features = arms.components[arm], arms.sizes[arm, K_USED], arms.features
    locate(T, K, arms.centres[arm], features, common, view)
    local_counts(T, K, features, arms.shared, view.x, view.c)


@kernel
def view_of(arms: Arms, arm: int, common: Common, x: Array) -> View:
    """The arm in this context."""
    view = blank_view(arms.sizes[arm, K_USED] + 1, n_features(arms), common)
    with_intercept(x, arms.features, view.x)
    look_at(arms, arm, common, view)
    return view


@kernel
def draws_in_common(n_draws: int, common: Common, rng: Rng) -> Array:
    """What the arms have in common, (n_draws, 0 or D) standard normal numbers."""
    h = np.empty((n_draws, common.shift.shape[0]))
    for draw in range(n_draws):
        for i in range(h.shape[1]):
            h[draw, i] = rng.standard_normal()
    return h


@no_refcount
def fill_draws(arms: Arms, x: Array, common: Common, h: Array, view: View, out: Array, rng: Rng) -> None:
    """Fill out (n_draws, n_arms) with draws of every arm's mean reward; h (n_draws, 0 or D) is common to the arms."""
    gamma, origin = arms.shared.concentration, arms.shared.origin
    with_intercept(x, arms.features, view.x)
    for arm in range(out.shape[1]):
        look_at(arms, arm, common, view)
        for draw in range(out.shape[0]):
            out[draw, arm] = origin + draw_mean(view, arms.sizes[arm, K_USED], gamma, h[draw], rng)


@no_refcount
def fill_moments(arms: Arms, x: Array, common: Common, view: View, out: Array) -> None:
    """Fill out (2, n_arms) with mean and sd of every arm's mean reward, raised where rewards are tied."""
    gamma, origin = arms.shared.concentration, arms.shared.origin
    with_intercept(x, arms.features, view.x)
    for arm in range(out.shape[1]):
        look_at(arms, arm, common, view)
        mean, sd = find_moments(view, arms.sizes[arm, K_USED], gamma)
        out[0, arm] = origin + mean
        out[1, arm] = sd
    inflate_sd_for_ties(arms, out)


@kernel
def draw_means(books: Books, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with joint draws of the arms' mean rewards."""
    rng, arms = rng_from(handle), arms_of(books)
    common = common_of(arms)
    fill_draws(arms, x, common, draws_in_common(out.shape[0], common, rng), view_for(arms, common), out, rng)


@kernel
def moments(books: Books, x: Array, out: Array) -> None:
    """Fill out (2, n_arms) with mean and sd of every arm's mean reward, raised where rewards are tied."""
    arms = arms_of(books)
    common = common_of(arms)
    fill_moments(arms, x, common, view_for(arms, common), out)


@inlined
def inflate_sd_for_ties(arms: Arms, out: Array) -> None:
    """Raise standard deviations to TIE_INFLATION sd / sqrt(n) where rewards are tied, which no density expects."""
    tied_sd = arms.shared.tied_sd
    if tied_sd > 0.0:
        for arm in range(out.shape[1]):
            n = n_held(arms.components[arm], arms.sizes[arm, K_USED])
            out[1, arm] = max(out[1, arm], TIE_INFLATION * tied_sd / math.sqrt(max(n, 1.0)))


@inlined
def locate_lanes(T: Array, k: int, centre: Array, features: Features, x: Array, m: Array, v: Array, g: Array) -> None:
    """`locate_given_c` of one component in ABREAST contexts x (D, ABREAST) at once: m, v and the columns of g."""
    D, L = x.shape
    for lane in range(L):
        m[lane], v[lane] = 0.0, 0.0
    for i in range(D):
        for lane in range(L):
            g[i, lane] = 0.0
    p = MEAN + D
    for i in range(D):
        u = T[MEAN + i, k]
        for lane in range(L):
            m[lane] += x[i, lane] * u
        for j in range(i):
            V = T[p, k]
            for lane in range(L):
                g[i, lane] += V * x[j, lane]
                g[j, lane] += V * x[i, lane]
            p += 1
        V = T[p, k]
        for lane in range(L):
            g[i, lane] += V * x[i, lane]
        p += 1
    for i in range(D):
        R, shift = features.part_var[i], centre[i, D] - centre[i, D + 1]
        for lane in range(L):
            v[lane] += g[i, lane] * x[i, lane]
            g[i, lane] /= R
            m[lane] += g[i, lane] * shift
    for lane in range(L):
        v[lane] = max(v[lane], 0.0)
    solve_lanes(centre, g)


@inlined
def locate_unseen_lanes(centre: Array, features: Features, x: Array, m: Array, v: Array, g: Array) -> None:
    """`locate_given_c` of the unseen component in ABREAST contexts."""
    D, L = x.shape
    for lane in range(L):
        m[lane], v[lane] = 0.0, 0.0
    for i in range(D):
        R, mu = features.part_var[i], centre[i, D]
        for lane in range(L):
            m[lane] += x[i, lane] * mu
            v[lane] += x[i, lane] * x[i, lane] * R
            g[i, lane] = x[i, lane]
    solve_lanes(centre, g)


@inlined
def solve_lanes(F: Array, g: Array) -> None:
    """Replace the first rows of g, as many as F has, by F^-1 times them."""
    D, L = F.shape[0], g.shape[1]
    for i in range(D):
        for j in range(i):
            f = F[i, j]
            for lane in range(L):
                g[i, lane] -= f * g[j, lane]
        f = F[i, i]
        for lane in range(L):
            g[i, lane] /= f


@inlined
def integrate_c_lanes(F: Array, L: Array, common: Common, m: Array, g: Array) -> None:
    """`integrate_c` of one component in ABREAST contexts."""
    D, n = F.shape[0], g.shape[1]
    below = g[D:]
    for i in range(D - 1, -1, -1):
        for lane in range(n):
            below[i, lane] = g[i, lane]
        for j in range(i + 1, D):
            f = F[j, i]
            for lane in range(n):
                below[i, lane] -= f * below[j, lane]
        f = F[i, i]
        for lane in range(n):
            below[i, lane] /= f
    for i in range(D):
        for lane in range(n):
            below[i, lane] /= L[i]
            m[lane] += below[i, lane] * common.shift[i]
    solve_lanes(common.factor, below)


@kernel
def moments_many(books: Books, contexts: Array, out: Array) -> None:
    """Fill out (n, 2, n_arms) with moments in contexts (n, d).

    ABREAST contexts go through the matrices together, which is the quicker the wider the processor's registers are; the
    numbers are those of `moments` to the bit.
    """
    arms = arms_of(books)
    base, gamma, origin = arms.features.base, arms.shared.concentration, arms.shared.origin
    n, D, C = contexts.shape[0], n_features(arms), arms.components.shape[2] + 1
    common = common_of(arms)
    view, H = blank_view(C, D, common), D + common.shift.shape[0]
    x, m, v, G = np.empty((D, ABREAST)), np.empty((C, ABREAST)), np.empty((C, ABREAST)), np.empty((C, H, ABREAST))
    for start in range(0, n, ABREAST):
        last = min(ABREAST, n - start)
        for lane in range(ABREAST):
            row = contexts[start + min(lane, last - 1)]
            for i in range(D):
                x[i, lane] = row[i] - base[i] if i < row.shape[0] else 1.0
        for arm in range(out.shape[2]):
            T, K, centre = arms.components[arm], arms.sizes[arm, K_USED], arms.centres[arm]
            for k in range(K):
                locate_lanes(T, k, centre, arms.features, x, m[k], v[k], G[k])
            locate_unseen_lanes(centre, arms.features, x, m[K], v[K], G[K])
            for k in range(K + 1 if H > D else 0):
                integrate_c_lanes(centre, arms.features.arm_var, common, m[k], G[k])
            for lane in range(last):
                for i in range(D):
                    view.x[i] = x[i, lane]
                for k in range(K + 1):
                    view.m[k], view.v[k] = m[k, lane], v[k, lane]
                    for i in range(H):
                        view.G[i, k] = G[k, i, lane]
                local_counts(T, K, arms.features, arms.shared, view.x, view.c)
                mean, sd = find_moments(view, K, gamma)
                out[start + lane, 0, arm] = origin + mean
                out[start + lane, 1, arm] = sd
    for i in range(n):
        inflate_sd_for_ties(arms, out[i])


@kernel
def describe_components(books: Books, x: Array, arm: int, out: Array) -> None:
    """Fill out (3, K + 1) with c, and mean and variance of x'w_k, of every component in use and of an unseen one."""
    arms = arms_of(books)
    view = view_of(arms, arm, common_of(arms), x)
    for k in range(arms.sizes[arm, K_USED] + 1):
        out[0, k] = view.c[k]
        out[1, k] = view.m[k]
        out[2, k] = view.v[k] + squared_length(view.G[:, k])


@kernel
def forecast(books: Books, x: Array, arm: int, y: float) -> tuple[float, float]:
    """An arm's mean reward, and the predictive density of its next one at y: normals of the components in use, and
    Student-t of a new one.
    """
    arms = arms_of(books)
    view = view_of(arms, arm, common_of(arms), x)
    T, K, prior, b = arms.components[arm], arms.sizes[arm, K_USED], arms.prior, arms.shared.noise_scale
    counts, total = 0.0, 0.0
    for k in range(K + 1):
        away, variance, part = y - arms.shared.origin - view.m[k], view.v[k] + squared_length(view.G[:, k]), 0.0
        if k < K:
            s2 = T[VAR, k] + variance
            part = math.exp(-0.5 * away * away / s2) / math.sqrt(2.0 * math.pi * s2)
        else:
            scale = math.sqrt(variance + b / prior.noise_shape)
            part = (1.0 - prior.wild_share) * student_density(away / scale, prior.noise_shape) / scale
            if prior.wild_share > 0.0:
                scale = math.sqrt(variance + b / prior.wild_shape)
                part += prior.wild_share * student_density(away / scale, prior.wild_shape) / scale
        counts += view.c[k]
        total += view.c[k] * part
    mean, _ = find_moments(view, K, arms.shared.concentration)
    return arms.shared.origin + mean, total / counts
