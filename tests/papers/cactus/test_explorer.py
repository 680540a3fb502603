"""The explorer: its first view is the setting that its rows have, and says its numbers."""

import json

from bookbuilder.chapter_pages.pictures import still
from derived.papers.cactus.explorer import AXES, explorer


def test_the_explorer_opens_at_the_setting_of_its_rows_and_stays_small(grid):
    rows = grid(token=range(1, 5)).assign(p=0.25, q=0.25, emitted=0.25, logit=0.0, push=1.0)
    rows = rows.assign(acceptance=0.9, exact=0.8, tv=0.1, kl=0.2, draft_kl=2.0, delta=0.1, temperature=1.5, noise=2.0)
    figure = explorer(rows)
    assert [slider.steps[slider.active].label for slider in figure.layout.sliders] == ["0.1", "1.5", "2"]
    assert all(len(values) >= 50 for values in AXES.values())
    assert figure.layout.meta["given"] == {"logits": [0.0] * 4, "push": [1.0] * 4}
    assert figure.data[3].base[2] + figure.data[3].x[2] == figure.data[3].x[0]  # gained = spent, end to end
    assert "0.200 nats, the draft 2.000" in figure.data[3].text[3]
    assert "from 0.80 to 0.90 for a TV of 0.10" in figure.layout.meta["alt"]
    assert len(figure.to_json()) < 50_000
    assert "0.200 nats" in still(json.loads(figure.to_json()))
