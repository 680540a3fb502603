"""What a finished style sheet keeps."""

import pytest

from bookbuilder import theme


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (".bs-tooltip-top{x:y}", True),  # a class that a script makes from pieces
        (".xbs-tooltip{x:y}", False),
        (".b-tooltip{x:y}", False),
        ("p{x:y}", True),
        (".known .other{x:y}", False),
        ("@media print{.other{x:y}}", False),
    ],
)
def test_a_rule_stays_if_its_classes_can_be_there(rule, kept):
    assert theme.of_use(rule, {"known"}) == (rule if kept else "")


def test_classes_are_those_of_pages_and_every_word_of_a_script(tmp_path):
    page, script = tmp_path / "a.html", tmp_path / "a.js"
    page.write_text('<p class="one two">three</p><script>x.add("four")</script>', "utf-8")
    script.write_text("y.toggle('five-six')", "utf-8")
    assert theme.classes([page], [script]) == {"one", "two", "x", "add", "four", "y", "toggle", "five-six"}
