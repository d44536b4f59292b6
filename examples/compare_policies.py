"""Compare three policies on rewards with outliers, and read the verdict."""

import polyarm as pa


def main() -> None:
    found = pa.compare("heavy-tailed", ["nonparametric", "linear", "optimal"], realizations=20, horizon=300, seed=1)
    for name, verdict in found.summary()["policies"].items():
        regret = verdict["regret"]
        print(f"{name:14s} regret {regret['mean']:6.1f} ± {regret['se']:4.1f}, median {regret['median']:6.1f}")
    difference = found.summary()["differences"]["linear"]
    low, high = difference["ci95"]
    print(f"linear minus nonparametric: {difference['mean']:+.1f}, 95 % CI {low:+.1f} to {high:+.1f}")


if __name__ == "__main__":
    main()
