"""A file is the whole bandit, and nothing else is taken for one."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import Bandit, save_state
from polyarm.bandit import file
from polyarm.errors import BrokenFile, InvalidArgument, NumericalFailure
from tests.bandit.shapes import ARMS, COLUMNS, played

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("policy", ["linear", "nonparametric"])
def test_loading_continues_bit_for_bit(policy: str, tmp_path: Path) -> None:
    bandit = played(Bandit(ARMS, COLUMNS, policy=policy, seed=7, min_propensity=0.01, max_pending=50), 40)
    path = bandit.save(tmp_path / "bandit.polyarm")
    again = Bandit.load(path)
    assert again.to_bytes() == path.read_bytes() == bandit.to_bytes()
    assert (again.settings, again.arms, again.pending) == (bandit.settings, bandit.arms, bandit.pending)
    for one in (bandit, again):
        played(one, 20, seed=5, prefix="later")
    assert [bandit.decision(f"later{i}") for i in range(20)] == [again.decision(f"later{i}") for i in range(20)]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = played(Bandit(ARMS, policy="linear", seed=1), 5)
    path = bandit.save(tmp_path / "bandit.polyarm")
    old = path.read_bytes()
    played(bandit, 5, prefix="more")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        bandit.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bandit.polyarm"]
    assert path.read_bytes() == old
    with pytest.raises(InvalidArgument, match="path must be in a folder that exists"):
        bandit.save(tmp_path / "nowhere" / "bandit.polyarm")


def test_there_is_no_pickle_in_it(tmp_path: Path) -> None:
    path = played(Bandit(ARMS, COLUMNS, seed=1), 5).save(tmp_path / "b.polyarm")
    with zipfile.ZipFile(path) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".json", ".txt", ".npy"}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    assert not np.lib.format.read_array(member, allow_pickle=False).dtype.hasobject


def test_damaged_files_are_refused_in_one_sentence() -> None:
    data = played(Bandit(ARMS, COLUMNS, policy="linear", seed=1), 10).to_bytes()
    rng = np.random.default_rng(0)
    for trial in range(1000):
        broken = bytearray(data)
        kind = trial % 4
        where = int(rng.integers(len(data)))
        if kind == 0:
            broken[where] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del broken[where:]
        elif kind == 2:
            del broken[where : where + 1 + int(rng.integers(100))]
        else:
            broken[where : where + 8] = rng.bytes(8)
        with pytest.raises(BrokenFile, match="must be") as caught:
            Bandit.from_bytes(bytes(broken), "headlines.polyarm")
        assert "\n" not in str(caught.value)


def with_true_checksum(data: bytes) -> bytes:
    return data[: -file.DIGITS] + file.checksum(data[: -file.DIGITS])


def rewritten(data: bytes, tmp_path: Path, change: Any) -> bytes:
    """The file with another header, and a checksum that is right."""
    source, target = tmp_path / "in.zip", tmp_path / "out.zip"
    source.write_bytes(data)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        new.comment = b"0" * file.DIGITS
        for name in old.namelist():
            content = old.read(name)
            if name == file.HEADER:
                header = json.loads(content)
                change(header)
                content = json.dumps(header).encode()
            new.writestr(name, content)
    return with_true_checksum(target.read_bytes())


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["settings"].update(policy="nonsense"),
        lambda h: h["settings"].update(options={"nonsense": 1}),
        lambda h: h["settings"].pop("seed"),
        lambda h: h["settings"]["schema"].update(columns=[]),
        lambda h: h.update(arms=h["arms"][:2]),
        lambda h: h.update(format="one"),
        lambda h: h.update(n_learnt=10**9, shape=None),
        lambda h: h.update(origins=[1.0]),
        lambda h: h.clear(),
    ],
    ids=range(9),
)
def test_files_that_contradict_themselves_are_refused(change: Any, tmp_path: Path) -> None:
    data = played(Bandit(ARMS, COLUMNS, policy="linear", seed=1), 10).to_bytes()
    assert Bandit.from_bytes(rewritten(data, tmp_path, lambda _: None)).n_learnt == 7
    with pytest.raises(BrokenFile, match="must be"):
        Bandit.from_bytes(rewritten(data, tmp_path, change))


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    save_state(tmp_path / "state", (np.ones(3),))
    for name in ("text", "empty", "zip", "state"):
        with pytest.raises(BrokenFile, match="must be a saved bandit, got another kind of file"):
            Bandit.load(tmp_path / name)
    with pytest.raises(BrokenFile, match="path must be a file that can be read"):
        Bandit.load(tmp_path / "missing")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    data = played(Bandit(ARMS, policy="linear", seed=1), 3).to_bytes()
    with pytest.raises(BrokenFile, match=r"must be of format \d or older, got 99: a newer polyarm wrote it"):
        Bandit.from_bytes(rewritten(data, tmp_path, lambda h: h.update(format=99)))


def test_an_older_format_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = played(Bandit(ARMS, policy="linear", seed=1), 10).to_bytes()

    def old(header: dict[str, Any]) -> None:
        header["format"] = file.FORMAT - 1
        header["learned"] = header.pop("n_learnt")

    def migrate(pages: file.Pages) -> file.Pages:
        return pages | {"header": pages["header"] | {"n_learnt": pages["header"]["learned"]}}

    monkeypatch.setitem(file.MIGRATIONS, file.FORMAT - 1, migrate)
    assert Bandit.from_bytes(rewritten(data, tmp_path, old)).to_bytes() == data


def test_a_state_that_is_kept_in_another_way_by_now_is_learnt_again(tmp_path: Path) -> None:
    bandit = played(Bandit(ARMS, COLUMNS, seed=1), 12)
    bandit.learn_logged([bandit.decision("d1").context], ["long"], [2.0])
    data = rewritten(bandit.to_bytes(), tmp_path, lambda h: h.update(shape=["of an older library"]))
    assert Bandit.from_bytes(data).to_bytes() == bandit.to_bytes()


def test_a_state_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    bandit = played(Bandit(ARMS, policy="linear", seed=1), 5)
    path = bandit.save(tmp_path / "b.polyarm")
    before = path.read_bytes()
    bandit._learner.state.roots[0, 0, 0] = np.nan
    with pytest.raises(NumericalFailure, match=r"state\.roots must be a number to be saved, got nan"):
        bandit.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("path", sorted(FILES.glob("*.polyarm")), ids=lambda path: path.stem)
def test_files_of_every_format_load_for_ever(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    bandit = Bandit.load(path)
    assert list(bandit.arms) == expected["arms"]
    assert list(bandit.pending) == expected["pending"]
    assert bandit.n_learnt == expected["n_learnt"]
    for name, arm in expected["played"].items():
        assert bandit.decision(name).arm == arm
    means = bandit.choose(expected["context"], id="next").means
    assert means is not None
    if expected["means"]:
        assert means == pytest.approx(expected["means"], rel=1e-6)


def test_there_is_a_file_of_every_format() -> None:
    formats = {path.stem.split("-")[1] for path in FILES.glob("*.polyarm")}
    assert formats == {str(number) for number in range(1, file.FORMAT + 1)}
