"""Information-directed sampling by the variance criterion (Russo & Van Roy 2018, section 6.3).

mean, sd  (A,)  of every arm's mean reward: a normal posterior, independent over arms
D      (A,)  expected regret of each arm: E[max] - mean
G      (A,)  information of each arm: how much of its mean reward's variance knowing the best arm b explains,
             sum_b P(b) (E[mu_a | b] - mean_a)^2
noise  (A,)  noise variance of each arm's rewards beside that of a typical arm: one reward of a noisy arm tells less of
             its mean, and G counts 1 / noise times (Kirschner & Krause 2018)
The arm is drawn from the distribution q over arms that minimises (q'D)^p / q'G, p > 1; two arms are always enough.
With p = 2 an arm far worse than the best one by a gap d, but rich in information, gets the share D_best / d; with a
smaller power D_best / ((p - 1) d).
Both are estimated from N draws around the known means, so the estimate of G is never far below sd^2 / N.  (Centring on
the draws' own average removes that; it cost 6 to 8 regret on mixture-a, mixture-b and linear.)
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, rng_from
from polyarm.kernels.order import place_of_greatest, place_of_least
from polyarm.types import Array, Rng


@kernel
def regret_and_information(mean: Array, sd: Array, n_draws: int, D: Array, G: Array, rng: Rng) -> None:
    """Estimate D and G from joint draws of the arms' mean rewards."""
    A = mean.shape[0]
    count, total, draw = np.zeros(A), np.zeros((A, A)), np.empty(A)
    top = 0.0
    for _ in range(n_draws):
        best = 0
        for a in range(A):
            draw[a] = sd[a] * rng.standard_normal()
            if mean[a] - mean[best] + draw[a] > draw[best]:
                best = a
        top += mean[best] - mean[0] + draw[best]
        count[best] += 1.0
        for a in range(A):
            total[best, a] += draw[a]
    for a in range(A):
        D[a] = max(top / n_draws - (mean[a] - mean[0]), 0.0)
        G[a] = 0.0
        for b in range(A):
            if count[b] > 0.0:
                G[a] += total[b, a] * total[b, a] / (count[b] * n_draws)


@kernel
def best_share(D1: float, D2: float, G1: float, G2: float, power: float) -> float:
    """Share of the first of two arms in the mix that minimises the ratio."""
    if D1 == D2:
        return 1.0 if G1 >= G2 else 0.0
    if G1 == G2:
        return 1.0 if D1 < D2 else 0.0
    return min(max((D2 / (D1 - D2) - power * G2 / (G1 - G2)) / (power - 1.0), 0.0), 1.0)


@kernel
def ratio(q: float, D1: float, D2: float, G1: float, G2: float, power: float) -> float:
    """Expected regret to the power per information of a mix of two arms."""
    regret = q * D1 + (1.0 - q) * D2
    information = q * G1 + (1.0 - q) * G2
    if information <= 0.0:
        return math.inf
    return (regret * regret if power == 2.0 else regret**power) / information


@kernel
def find_mix(D: Array, G: Array, power: float, out: Array) -> None:
    """Write the distribution over arms that minimises the ratio; without any information, the arm of least regret."""
    A = D.shape[0]
    lowest = math.inf
    first = second = place_of_least(D)
    share = 1.0
    for a in range(A):
        for b in range(a + 1, A):
            for q in (0.0, 1.0, best_share(D[a], D[b], G[a], G[b], power)):
                value = ratio(q, D[a], D[b], G[a], G[b], power)
                if value < lowest:
                    lowest, first, second, share = value, a, b, q
    for a in range(A):
        out[a] = 0.0
    out[first] += share
    out[second] += 1.0 - share


@inlined
def discount(G: Array, noise: Array) -> None:
    """Count information by how much of it one reward gives."""
    for a in range(G.shape[0]):
        G[a] /= noise[a]


@kernel
def find_shares(moments: Array, noise: Array, n_draws: int, power: float, out: Array, handle: RngHandle) -> None:
    """Fill out (n_arms,) with the arms' shares in the mix."""
    rng = rng_from(handle)
    A = moments.shape[1]
    D, G = np.empty(A), np.empty(A)
    regret_and_information(moments[0], moments[1], n_draws, D, G, rng)
    discount(G, noise)
    find_mix(D, G, power, out)


@kernel
def find_many(
    moments: Array, noise: Array, n_draws: int, n_rounds: int, power: float, out: Array, handle: RngHandle
) -> None:
    """Fill out (n, n_arms) with the shares for moments (n, 2, n_arms), each a mean over rounds of fresh draws."""
    rng = rng_from(handle)
    A = moments.shape[2]
    D, G, mix = np.empty(A), np.empty(A), np.empty(A)
    for i in range(moments.shape[0]):
        out[i] = 0.0
        for _ in range(n_rounds):
            regret_and_information(moments[i, 0], moments[i, 1], n_draws, D, G, rng)
            discount(G, noise)
            find_mix(D, G, power, mix)
            for a in range(A):
                out[i, a] += mix[a] / n_rounds


@kernel
def choose(
    moments: Array, noise: Array, n_draws: int, power: float, mix: Array, scores: Array, handle: RngHandle
) -> int:
    """Draw an arm from the mix."""
    find_shares(moments, noise, n_draws, power, mix, handle)
    return race(mix, scores, handle)


@kernel
def find_mix_of_rows(rows: Array, power: float, out: Array) -> None:
    """Write the mix where D and G are estimated from joint draws (n_draws, n_arms) of whatever is to be maximised."""
    n, A = rows.shape
    mean, D, G = np.zeros(A), np.empty(A), np.zeros(A)
    count, total, top = np.zeros(A), np.zeros((A, A)), 0.0
    for i in range(n):
        for a in range(A):
            mean[a] += rows[i, a] / n
    for i in range(n):
        best = 0
        for a in range(A):
            if rows[i, a] > rows[i, best]:
                best = a
        top += rows[i, best] / n
        count[best] += 1.0
        for a in range(A):
            total[best, a] += rows[i, a] - mean[a]
    for a in range(A):
        D[a] = max(top - mean[a], 0.0)
        for b in range(A):
            if count[b] > 0.0:
                G[a] += total[b, a] * total[b, a] / (count[b] * n)
    find_mix(D, G, power, out)


@kernel
def race(mix: Array, scores: Array, handle: RngHandle) -> int:
    """Draw an arm from the mix by a race: arm a scores its share over an Exp(1) draw, and the highest score wins."""
    rng = rng_from(handle)
    for a in range(mix.shape[0]):
        scores[a] = mix[a] / rng.standard_exponential() if mix[a] > 0.0 else 0.0
    return place_of_greatest(scores)
