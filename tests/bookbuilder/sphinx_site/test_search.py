"""The index of the search: formulas as text, and an entry for everything that has an anchor."""

import pytest
from bs4 import BeautifulSoup

from bookbuilder.sphinx_site import search

PAGE = r"""
<article class="bd-article"><section id="top"><h1>1. Least squares<a class="headerlink">#</a></h1><p>It begins.</p>
<section id="hats"><h2>1.2. The hat matrix<a class="headerlink">#</a></h2>
<p>Its trace is <span class="math">\(\operatorname{tr} H \le d\)</span>.</p>
<div class="math" id="equation-fit"><span class="eqno">(1.4)<a>#</a></span>\[\hat\beta = \frac{1}{n} X^{\top} y\]</div>
<div class="proof admonition" id="thm"><p class="admonition-title">Theorem 1.4 (Fit)<span class="whose">ours</span></p>
<section id="proof-content"><p>One pass is the fit.</p></section></div>
<div class="cell"><pre>secret_code()</pre></div>
<div class="solution admonition" id="sol"><p class="admonition-title">Solution</p><p>answer</p></div>
<figure id="fig"><figcaption><span class="caption-number">Fig. 1.1 </span>A line.</figcaption></figure>
<dl class="glossary"><dt id="term-sink">sink<a class="headerlink">#</a></dt><dd><p>It drains.</p></dd></dl>
</section></section></article>"""


@pytest.fixture(scope="module")
def found() -> dict[str, search.Entry]:
    page = BeautifulSoup(PAGE, "html.parser")
    return {entry.url: entry for entry in search.entries(page.article, "a.html")}


def test_everything_with_an_anchor_is_found_at_it(found):
    assert {url: (entry.kind, entry.title) for url, entry in found.items()} == {
        "a.html": ("Page", "1. Least squares"),
        "a.html#hats": ("Section", "1.2. The hat matrix"),
        "a.html#thm": ("Statement", "Theorem 1.4 (Fit)"),
        "a.html#fig": ("Figure", "Fig. 1.1"),
        "a.html#equation-fit": ("Formula", "Equation 1.4"),
        "a.html#term-sink": ("Term", "sink"),
    }
    assert all(entry.page == "1. Least squares" for entry in found.values())


def test_a_text_is_found_once_and_without_tex_code_or_solutions(found):
    assert found["a.html"].text == "It begins."
    assert found["a.html#hats"].text == "Its trace is tr H ≤ d. β̂ = 1/n X^⊤ y"
    assert found["a.html#thm"].text == "One pass is the fit."
    assert not [entry for entry in found.values() if "secret" in entry.text or "answer" in entry.text]


def test_a_claim_is_found_in_the_ledger_alone():
    row = '<tr class="claim" id="CAC-5.a"><th><span class="verdict">✓ holds</span>CAC-5.a</th><td>It holds.</td></tr>'
    article = BeautifulSoup(f"<article><h1>Ledger</h1><table>{row}</table></article>", "html.parser").article
    [found] = search.entries(article, search.LEDGER)
    assert (found.url, found.text) == ("book/ledger.html#CAC-5.a", "✓ holds CAC-5.a It holds.")
    assert not [*search.entries(article, "notebooks/cactus.html")]


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\(\beta_i \in \mathbb{R}^{d}\)", "β_i ∈ R^d"),
        (r"\[\begin{aligned} a &= \tfrac{1}{\frac{2}{3}} \\ b &\to \infty \end{aligned}\]", "a = 1/(2/3) b → ∞"),
        (r"\ln J^{b,0}\sim\sqrt{b/\lambda}", "ln J^(b,0)∼√(b/λ)"),
        (r"(1+2\delta)<2\delta,\quad q_n=\frac1{1+2\delta}", "(1+2δ)<2δ, q_n=1/(1+2δ)"),
        (r"\big(\tfrac13,\frac c2-1\big)\\[x]", "(1/3,c/2 -1) [x]"),
        (r"\frac{\sqrt{1-\frac{x^2}{y}}}n\Pr\{a\}", "(√(1-(x^2)/y))/n Pr{a}"),
        (r"\lVert x\rVert^{2n}y+e^{-py}\lvert z\rvert a_ib_{\rm KL}", "‖x‖^(2n) y+e^-py|z| a_i b_KL"),
        (r"\hat\beta=\bar h+\overline{ab}+\tilde{x}\iff r=n\bmod C", "β̂=h̄+(ab)̅+x̃⇔ r=n mod C"),
        (r"f(x)\ln\frac ab\to \operatorname{clip}(p,1{,}000)", "f(x) ln a/b → clip(p,1,000)"),
        (r"\left\| x \right\|_2 \log n", "‖ x ‖_2 log n"),
        (r"\text{if } n > 0", "if n > 0"),
        (
            r"\log\exp\ln\max\min\sup\inf\lim\liminf\limsup\det\sin\cos\tan\arcsin\arccos\arctan\sinh\cosh\tanh x",
            "log exp ln max min sup inf lim liminf limsup det sin cos tan arcsin arccos arctan sinh cosh tanh x",
        ),
    ],
)
def test_a_formula_becomes_a_line_of_text(tex, text):
    assert search.plain(tex) == text
