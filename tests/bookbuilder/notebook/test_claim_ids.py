"""The claims that a paper's sources state."""

from bookbuilder.notebook import claim_ids

TOPIC = '''"""The topic."""

from .helpers import far


def ours(id, **facts):
    return statistic(id, "A sentence.", Toy, measure.mean("gap", "layer > 0"), "gap", at_most(1), **facts)


def seen(id):
    return unseen(id, "A sentence.", "the reason")


CLAIMS = (
    statistic("T-1", "A sentence.", Toy, far, "mean", at_most(1), where="here"),
    identity("T-2", "A sentence.", Toy, measure.worst("gap", where="layer > 0"), proof="a-label"),
    ours("T-3"),
    on_page("T-4"),
    *(statistic(f"T-5.{x}", "A sentence.", Toy, measure.mean(x), "mean", at_most(1)) for x in "ab"),
    seen("T-6"),
    unseen("T-7", "A sentence.", "the reason"),
    max(()),
    max([]),
)
'''


def test_claims_are_found_where_a_paper_states_them(tmp_path):
    file = tmp_path / "src/derived/papers/toy/topic.py"
    file.parent.mkdir(parents=True)
    file.write_text(TOPIC)
    assert sorted(claim_ids.ids(tmp_path, "toy")) == ["T-1", "T-2", "T-3", "T-4", "T-6", "T-7"]
    assert sorted(claim_ids.ids(tmp_path, "toy", judged=True)) == ["T-1", "T-2", "T-3", "T-4"]
