"""Sliders of explorers: every position has its frame, and the site's script finds it by name."""

import itertools

import plotly.graph_objects as go
import pytest

from derived.lab.explorer import computed, label, sliders, stops


def frames_of(*values) -> dict:
    """A bar per position, as high as its number."""
    return {key: {"data": [go.Bar(y=[place])], "traces": [0]} for place, key in enumerate(itertools.product(*values))}


def test_several_sliders_name_one_frame():
    """As the script does it: the labels of the sliders' steps, joined by a bar."""
    axes = {"n = ": (1, 1048576), "β = ": (0.01, 0.31623, 2.0)}
    frames = frames_of(*axes.values())
    figure = sliders(go.Figure(go.Bar(y=[4])), frames, axes, start=(1048576, 0.31623))
    first, second = figure.layout.sliders
    assert [step.label for step in first.steps] == ["1", "1048576"]
    assert [step.label for step in second.steps] == ["0.01", "0.316", "2"]
    assert {step.method for step in (*first.steps, *second.steps)} == {"skip"}
    assert [slider.currentvalue.prefix for slider in figure.layout.sliders] == ["n = ", "β = "]
    by_name = {frame.name: frame for frame in figure.frames}
    for key, frame in frames.items():
        assert by_name["|".join(map(label, key))].data[0].y == frame["data"][0].y
    name = "|".join(slider.steps[slider.active].label for slider in figure.layout.sliders)
    assert by_name[name].data[0].y == figure.data[0].y
    assert by_name[name].traces == (0,)


def test_one_slider_says_itself_which_frame_to_show():
    figure = sliders(go.Figure(), frames_of((0, 5, 10)), {"layer ": (0, 5, 10)}, start=(0,))
    (slider,) = figure.layout.sliders
    assert [frame.name for frame in figure.frames] == ["0", "5", "10"]
    assert [step.method for step in slider.steps] == ["animate"] * 3
    assert [list(step.args[0]) for step in slider.steps] == [["0"], ["5"], ["10"]]
    assert slider.steps[0].args[1]["frame"]["duration"] == 0


def test_the_figure_keeps_what_it_says_of_itself_and_frames_may_change_the_layout():
    frames = {(1,): {"data": [], "layout": {"xaxis": {"range": [0, 3]}}}}
    figure = go.Figure(layout={"meta": {"play": True, "alt": "words"}, "height": 300})
    assert sliders(figure, frames, {"n = ": [1]}, start=[1]) is figure
    assert figure.layout.meta == {"play": True, "alt": "words"}
    assert figure.frames[0].layout.xaxis.range == (0, 3)


@pytest.mark.parametrize(
    ("axes", "frames", "start", "message"),
    [
        ({"n = ": (1, 2)}, frames_of((1,)), (1,), r"1 frames for 2 positions, as of \(2,\)"),
        ({"n = ": (1,)}, frames_of((1, 2)), (1,), r"2 frames for 1 positions, as of \(2,\)"),
        ({"n = ": (1, 2)}, frames_of((1, 2)), (3,), "3 is not in list"),
        ({"x = ": (0.12345, 0.12349)}, frames_of((0.12345, 0.12349)), (0.12345,), "written alike, 0.123, 0.123"),
    ],
)
def test_a_position_without_a_frame_is_refused(axes, frames, start, message):
    with pytest.raises(ValueError, match=message):
        sliders(go.Figure(), frames, axes, start)


def test_a_computed_figure_carries_its_function_and_what_is_given(tmp_path):
    script = tmp_path / "explorer.js"
    script.write_text("function compute([n], { k }) {}", "utf-8")
    figure = computed(go.Figure(layout={"meta": {"alt": "words"}}), script, {"n = ": stops((1, 2.5))}, (2.5,), k=[1])
    assert figure.layout.meta == {"alt": "words", "compute": script.read_text("utf-8"), "given": {"k": [1]}}
    (slider,) = figure.layout.sliders
    assert [(step.label, step.method) for step in slider.steps] == [("1", "skip"), ("2.5", "skip")]
    assert slider.active == 1
    assert not figure.frames
    with pytest.raises(ValueError, match=r"compute at 0\.333 what stands at 0\.33333"):
        computed(go.Figure(), script, {"n = ": (1 / 3,)}, (1 / 3,))
    with pytest.raises(ValueError, match="is not in list"):
        computed(go.Figure(), script, {"n = ": (1, 2)}, (3,))
