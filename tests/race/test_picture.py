"""The picture: a PNG of the expected size that shows every optimizer."""

from __future__ import annotations

import io
import itertools
import math
import struct
import sys
import zlib
from typing import Any

import matplotlib
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import colors
from matplotlib.image import imread

from zoo.race import picture
from zoo.race.errors import RaceError
from zoo.race.picture import SIZE, draw
from zoo.race.runner import Lap, Race
from zoo.race.tasks import Evaluation

from .tiny import TINY


def lap(name: str, end: float, steps: int = 40, **fields: Any) -> Lap:
    """A lap whose losses fall from 2 to ``end``."""
    losses = [2 * (end / 2) ** (step / steps) for step in range(steps)]
    held_out = [(step, Evaluation(2 * (end / 2) ** (step / steps), 0.5)) for step in range(0, steps + 1, 5)]
    return Lap(name, 0.1, "given", losses=losses, held_out=held_out, **{"status": "finished", **fields})


def race(*laps: Lap) -> Race:
    return Race(TINY, 40, 0, 99, {}, list(laps))


def chunks(png: bytes) -> dict[bytes, bytes]:
    """The PNG's chunks; their checksums are right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = {}, 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        content = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        found[kind] = content
        at += 12 + length
    return found


def pixels(png: bytes, color: str) -> int:
    """How many pixels have exactly this colour."""
    image = imread(io.BytesIO(png))[..., :3]
    return int((abs(image - numpy.array(colors.to_rgb(color))).max(-1) < 1 / 255).sum())


def test_the_picture_is_a_whole_png_of_the_stated_size() -> None:
    found = chunks(draw(race(lap("a", 0.1))))
    assert struct.unpack(">II", found[b"IHDR"][:8]) == SIZE
    assert b"IEND" in found


@pytest.mark.parametrize("count", [1, 3, 7])
def test_every_optimizer_has_a_colour_of_its_own(count: int) -> None:
    png = draw(race(*(lap(f"optimizer_{index}", 0.1 * 1.5**index) for index in range(count))))
    black_text = pixels(draw(race()), "#000000")
    for index, color in enumerate(picture._COLORS):
        seen = pixels(png, color) - (black_text if color == "#000000" else 0)
        assert (seen > 500) == (index < count), (color, seen)


def test_more_optimizers_than_colours_get_dashes() -> None:
    styles = [picture._style(rank) for rank in range(12)]
    assert len({repr(style) for style in styles}) == 12
    assert all(dash == "-" for _, dash in styles[:7])


def test_equal_races_give_equal_pictures() -> None:
    first, second = (draw(race(lap("a", 0.1), lap("b", 0.2))) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "laps",
    [
        [],
        [lap("diverged", 0.1, status="diverged")],
        [Lap("failed", 0.1, "given", status="failed")],
        [
            lap("good", 0.1),
            Lap(
                "diverged",
                0.1,
                "given",
                losses=[2.0, math.nan],
                held_out=[(0, Evaluation(2.0, 0.1))],
                status="diverged",
            ),
        ],
        [lap("worse_than_the_start", 1e30), lap("good", 0.1)],
        [lap("worse_than_the_start", 3.0)],
        [lap(f"optimizer_{index}", 0.1) for index in range(40)],
    ],
    ids=["none", "diverged", "failed", "both", "climbing", "only_climbing", "forty"],
)
def test_odd_races_can_be_drawn(laps: list[Lap]) -> None:
    assert struct.unpack(">II", chunks(draw(race(*laps)))[b"IHDR"][:8]) == SIZE


@given(wanted=st.lists(st.floats(-0.5, 1.5), max_size=30).map(sorted), gap=st.floats(0.001, 0.3))
@settings(max_examples=200, deadline=None)
def test_labels_keep_their_order_and_distance_inside_the_panel(wanted: list[float], gap: float) -> None:
    heights = picture._spread(wanted, gap)
    assert len(heights) == len(wanted)
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in heights)
    least = min(gap, 1 / len(wanted)) if wanted else gap
    assert all(upper - lower >= least - 1e-9 for lower, upper in itertools.pairwise(heights))


def test_labels_that_have_room_stay_where_their_curves_end() -> None:
    assert picture._spread([0.1, 0.5, 0.9], gap=0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert picture._spread([0.5, 0.5], gap=0.1) == pytest.approx([0.45, 0.55])


def test_the_moving_average_starts_unbiased_and_ends_where_a_loss_is_not_finite() -> None:
    assert picture._smoothed([2.0] * 5, steps=400) == pytest.approx([2.0] * 5)
    assert picture._smoothed([2.0, math.inf, 2.0], steps=400) == pytest.approx([2.0])
    assert picture._smoothed([1.0, 3.0, 5.0], steps=40) == pytest.approx([1.0, 3.0, 5.0])


def test_a_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RaceError, match=r"needs matplotlib: pip install 'optimizer-zoo\[race\]'"):
        draw(race())


def test_the_callers_matplotlib_is_left_alone() -> None:
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 40}):
        before = dict(matplotlib.rcParams)
        styled = draw(race(lap("a", 0.1)))
        assert dict(matplotlib.rcParams) == before
    assert styled == draw(race(lap("a", 0.1)))


def test_drawing_imports_no_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it raises
    assert draw(race(lap("a", 0.1)))
