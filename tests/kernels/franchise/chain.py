"""A franchise as kernels keep it, and by its definition: tables are lists, weights ratios of joint densities."""

from collections.abc import Sequence

import numpy as np

from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.franchise import moves
from polyarm.kernels.franchise.books import Dishes, Franchise, Guests, Rules, Tables
from polyarm.kernels.mixture.component import COEF, COUNT, LOG_DET, MEAN, SCALE
from polyarm.kernels.mixture.records import EVER, K_USED, NEXT, ROWS
from polyarm.models import LinearMixture, NormalInverseGamma
from tests import reference
from tests.kernels.script import Script
from tests.statistics.exact import log_evidence

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
N, A, CAPACITY, ROOM = 20, 3, 24, 24
ARM_OF = [0, 2, 0, 0, 2, 2, 0, 2, 0, 0, 2, 0, 2, 2, 0, 0, 2, 0, 2, 0]  # nobody plays the second arm


class Chain:
    """Both of them."""

    def __init__(self, rules: Rules) -> None:
        rng = np.random.default_rng(2)
        self.rules = rules
        self.X = rng.standard_normal((N, 2))
        self.X[::6] *= 200.0
        self.y = self.X @ [1.0, -0.5] + rng.choice([0.0, 9.0, -12.0], N) + 0.3 * rng.standard_normal(N)
        prior = prior_of([LinearMixture(BASE)])
        prior.processes[0, 2:] = 0.0
        order = np.roll(np.arange(CAPACITY), 3)
        self.order = [int(k) for k in order]  # labels of the places
        self.n_dishes = 0
        self.tables: list[list[tuple[int, list[int]]]] = [[] for _ in range(A)]  # label of the dish, and the guests
        self._evidence: dict[frozenset[int], float] = {frozenset(): 0.0}
        self.books = Franchise(
            Dishes(
                np.zeros((prior.columns.shape[1], CAPACITY)),
                np.array([order, np.argsort(order)]),
                np.zeros(4, np.int64),
                prior.columns[0],
                prior.sqrt_information[0],
                prior.processes[0],
            ),
            Guests(np.zeros((N, 4)), np.full(N, -1), np.full(N, -1), np.full(N, -1)),
            Tables(
                np.zeros(CAPACITY, np.int64),
                np.zeros((A, ROOM), np.int64),
                np.zeros((A, ROOM), np.int64),
                np.zeros((A, 3), np.int64),
            ),
            rules,
        )
        self.uniforms = np.random.default_rng(5)

    def take(self, n: int) -> list[float]:
        """The next uniform numbers."""
        return [float(u) for u in self.uniforms.random(n)]

    def evidence(self, rewards: Sequence[int]) -> float:
        """Log marginal density of some rewards of one dish."""
        key = frozenset(rewards)
        if key not in self._evidence:
            rows = sorted(key)
            self._evidence[key] = log_evidence(self.X[rows], self.y[rows], BASE)
        return self._evidence[key]

    @property
    def dishes(self) -> list[int]:
        """Labels on the menu."""
        return self.order[: self.n_dishes]

    def eaters(self, label: int) -> list[int]:
        """Rewards of a dish."""
        return [i for arm in self.tables for dish, guests in arm for i in guests if dish == label and guests]

    def n_tables(self, label: int) -> int:
        """Tables that eat a dish."""
        return sum(dish == label and len(guests) > 0 for arm in self.tables for dish, guests in arm)

    def table_of(self, i: int) -> int:
        """Where reward i sits in its arm."""
        return next(t for t, (_, guests) in enumerate(self.tables[ARM_OF[i]]) if i in guests)

    def strike_off(self, label: int) -> None:
        """A dish that nobody eats gives its place to the last one."""
        self.n_dishes -= 1
        k, last = self.order.index(label), self.n_dishes
        self.order[k], self.order[last] = self.order[last], self.order[k]

    def drawn(self, logw: list[float], u: float) -> int:
        p = np.exp(np.array(logw) - max(logw))
        return int(np.searchsorted(np.cumsum(p), u * p.sum(), side="right"))

    def weights(self, i: int) -> list[float]:
        """Log weights of reward i: tables of its arm, then a new table with each dish, then with a new one."""
        r, arm = self.rules, self.tables[ARM_OF[i]]
        fit = {k: self.evidence([*self.eaters(k), i]) - self.evidence(self.eaters(k)) for k in self.dishes}
        logw = [np.log(len(guests) - r.discount) + fit[dish] if guests else -np.inf for dish, guests in arm]
        in_use, all_tables = sum(len(guests) > 0 for _, guests in arm), sum(map(self.n_tables, self.dishes))
        table = np.log(r.concentration + r.discount * in_use) if in_use else 0.0
        table -= np.log(all_tables + r.shared_concentration) if all_tables else 0.0
        logw += [table + np.log(self.n_tables(k) - r.shared_discount) + fit[k] for k in self.dishes]
        new = np.log(r.shared_concentration + r.shared_discount * self.n_dishes) if self.n_dishes else 0.0
        return [*map(float, logw), float(table + new) + self.evidence([i])]

    def sit(self, i: int, u: float) -> None:
        """Draw table and dish of reward i."""
        arm, t = self.tables[ARM_OF[i]], self.drawn(self.weights(i), u)
        if t >= len(arm):
            k = t - len(arm)
            self.n_dishes += k == self.n_dishes
            t = next((free for free, (_, guests) in enumerate(arm) if not guests), len(arm))
            arm[t : t + 1] = [(self.order[k], [])]
        arm[t][1].append(i)

    def leave(self, i: int) -> None:
        """Take reward i from its table."""
        arm = self.tables[ARM_OF[i]]
        label, guests = arm[self.table_of(i)]
        guests.remove(i)
        while arm and not arm[-1][1]:
            arm.pop()
        if self.n_tables(label) == 0:
            self.strike_off(label)

    def change_dish(self, a: int, t: int, u: float) -> None:
        """Draw the dish of a table again."""
        r, (old, block) = self.rules, self.tables[a][t]
        self.tables[a][t] = (-1, block)
        if self.n_tables(old) == 0:
            self.strike_off(old)
        logw = [
            float(np.log(self.n_tables(k) - r.shared_discount))
            + self.evidence([*self.eaters(k), *block])
            - self.evidence(self.eaters(k))
            for k in self.dishes
        ]
        new = r.shared_concentration + r.shared_discount * self.n_dishes if self.n_dishes else 1.0
        k = self.drawn([*logw, float(np.log(new)) + self.evidence(block)], u)
        self.n_dishes += k == self.n_dishes
        self.tables[a][t] = (self.order[k], block)

    def learn(self, i: int) -> None:
        """Take reward i in, both ways."""
        own = self.take(1)
        plain(moves.learn)(self.books, ARM_OF[i], self.X[i], self.y[i], Script(uniforms=own))
        self.sit(i, own[0])

    def move_rewards(self, n_moves: int) -> None:
        n, uniforms = int(self.books.dishes.size[ROWS]), self.take(2 * n_moves)
        assert plain(moves.move_rewards)(self.books, n_moves, Script(uniforms=uniforms)) == 0
        for place, u in zip(uniforms[::2], uniforms[1::2], strict=True):
            self.leave(int(place * n))
            self.sit(int(place * n), u)

    def move_tables(self, n_moves: int) -> None:
        n, uniforms = int(self.books.dishes.size[ROWS]), self.take(2 * n_moves)
        assert plain(moves.move_tables)(self.books, n_moves, Script(uniforms=uniforms)) == 0
        for place, u in zip(uniforms[::2], uniforms[1::2], strict=True):
            i = int(place * n)
            self.change_dish(ARM_OF[i], self.table_of(i), u)

    def check(self) -> None:
        """Raise unless the books say what the lists do, and every dish is that of its rewards."""
        (T, labels, size, *_), (_, z, arm_of, table_of), (menu, dish, guests, arms), _ = self.books
        n = int(size[ROWS])
        assert size[NEXT] == size[EVER] == n
        assert size[K_USED] == self.n_dishes
        assert labels[0].tolist() == self.order
        np.testing.assert_array_equal(labels[1][labels[0]], np.arange(CAPACITY))
        assert arm_of[:n].tolist() == ARM_OF[:n]
        for a, arm in enumerate(self.tables):
            in_use = [len(sitting) for _, sitting in arm]
            assert arms[a].tolist() == [sum(m > 0 for m in in_use), len(arm), sum(in_use)]
            assert guests[a].tolist() == in_use + [0] * (ROOM - len(arm))
            for t, (label, sitting) in enumerate(arm):
                assert not sitting or dish[a, t] == label
                assert all(table_of[i] == t and z[i] == label for i in sitting)
        for k, label in enumerate(self.dishes):
            rows = self.eaters(label)
            fresh, m = reference.fresh_component(BASE, self.X[rows], self.y[rows]), len(rows)
            assert menu[label] == self.n_tables(label)
            assert T[COUNT, k] == m
            np.testing.assert_allclose(T[SCALE, k], fresh["scale"], rtol=1e-7)
            np.testing.assert_allclose(T[MEAN : MEAN + 2, k], fresh["mean"], rtol=1e-6, atol=1e-6)
            covariance = np.asarray(fresh["covariance"])
            np.testing.assert_allclose(T[LOG_DET, k], np.linalg.slogdet(covariance)[1], atol=1e-7)
            step = float(reference.log_gamma_step(np.array(BASE.shape + m / 2)))
            coefficient = np.log(m) + step - 0.5 * np.log(2 * np.pi * T[SCALE, k])
            np.testing.assert_allclose(T[COEF, k], coefficient, rtol=1e-9)
