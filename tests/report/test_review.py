"""The review page: what it holds, and how it works in a browser."""

import csv
import io
import json
import re
import time

import pytest

from browser import Browser, find_browser
from kernelweave import apply_decisions
from kernelweave.errors import DataError
from kernelweave.report.review import Review, ReviewItem, cell, render_review, write_review

EVIL = "</script><script>document.title='run'</script>"


def make(n=6, before=(), given="cat"):
    """Return questions on n rows; a name and a value look like markup."""
    items = [
        ReviewItem((k,), given, "dog, big", 0.1 + 0.01 * k, ("It barks.",), (1,), ((k + 1, "dog"),))
        for k in range(n)
    ]
    rows = {k: [f"{k}", EVIL] for k in range(n + 1)}
    labels = ["cat", "dog, big", 'a "fox"']
    return Review("Pets & more", "Some labels.", items, labels, ["n", "<i>voice</i>"], rows, before)


def content(page):
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def test_the_page_holds_its_questions_as_data():
    page = render_review(make())
    assert EVIL not in page
    assert "Pets &amp; more" in page
    held = content(page)
    assert held["rows"]["0"][1] == EVIL
    assert [item["place"] for item in held["items"]] == [[k] for k in range(6)]
    assert not held["pairs"]


def test_other_questions_have_another_digest():
    digests = [
        re.search(r'data-digest="(\w+)"', render_review(review)).group(1)
        for review in (make(), make(), make(5), make(given="cow"))
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_page_without_questions_says_so(tmp_path):
    path = write_review(make(0), tmp_path / "none.html")
    assert "There is nothing to review" in path.read_text(encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        write_review(make(0), tmp_path / "no" / "none.html")


def test_cells_are_short():
    assert [cell(1 / 3), cell(float("nan")), cell(7)] == ["0.33333", "", "7"]
    assert len(cell("x" * 1000)) == 300


@pytest.fixture(scope="module")
def browser():
    if find_browser() is None:
        pytest.skip("no Chromium here; install it, or name one in KERNELWEAVE_BROWSER")
    browser = Browser(find_browser())
    yield browser
    browser.close()


@pytest.fixture
def page(tmp_path):
    return write_review(make(), tmp_path / "review.html")


def text(browser, name):
    return browser.run(f"document.getElementById({name!r}).textContent")


def exported(browser, folder, key="e"):
    """Export the decisions and return the file as rows of text."""
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.press(key, text=key)
    path = folder / "decisions.csv"
    for _ in range(200):
        if path.exists():
            break
        time.sleep(0.05)
    return path, list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_keys_decide_and_the_file_is_applied(browser, page, tmp_path):
    browser.open(page)
    for key in "ckuc":
        browser.press(key, text=key)
    assert text(browser, "state").startswith("4 of 6 decided: 1 kept, 2 changed, 1 unsure")
    assert text(browser, "number").startswith("Question 5 of 6")
    browser.press("z", text="z")
    assert text(browser, "state").startswith("3 of 6 decided: 1 kept, 1 changed, 1 unsure")
    assert text(browser, "number").startswith("Question 4 of 6")
    browser.press("ArrowLeft")
    assert text(browser, "number").startswith("Question 3 of 6")
    path, lines = exported(browser, tmp_path)
    assert [(line["row"], line["decision"], line["label"]) for line in lines] == [
        ("0", "change", "dog, big"),
        ("1", "keep", "cat"),
        ("2", "unsure", ""),
    ]
    decided = apply_decisions(["cat"] * 6, path)
    assert decided.labels.tolist() == ["dog, big", *["cat"] * 5]
    assert decided.certain.tolist() == [True, True, *[False] * 4]
    assert browser.complaints() == []


def test_a_third_label_is_chosen_from_a_list(browser, page, tmp_path):
    browser.open(page)
    browser.run(
        "(() => { const box = document.getElementById('other'); box.value = 'a \"fox\"';"
        "box.dispatchEvent(new Event('change')); })()"
    )
    _, lines = exported(browser, tmp_path)
    assert lines[-1]["label"] == 'a "fox"'
    assert lines[-1]["decision"] == "change"


def test_reloading_keeps_what_was_decided(browser, tmp_path):
    page = write_review(make(7), tmp_path / "kept.html")
    browser.open(page)
    browser.press("c", text="c")
    browser.press("u", text="u")
    assert text(browser, "state").startswith("2 of 7")
    browser.open(page)
    assert text(browser, "state").startswith("2 of 7 decided: 0 kept, 1 changed, 1 unsure")
    assert text(browser, "number").startswith("Question 3 of 7")
    other = write_review(make(8), tmp_path / "other.html")
    browser.open(other)
    assert text(browser, "state").startswith("0 of 8 decided")


def test_earlier_decisions_are_exported_again(browser, tmp_path):
    before = [{"row": 40, "decision": "keep", "given": "cat", "label": "cat"}]
    browser.open(write_review(make(9, before), tmp_path / "second.html"))
    browser.press("k", text="k")
    _, lines = exported(browser, tmp_path)
    assert [line["row"] for line in lines] == ["40", "0"]


def test_the_page_is_quiet_and_fits(browser, tmp_path):
    page = write_review(make(4), tmp_path / "quiet.html")
    for width, dark in ((1200, False), (390, True)):
        browser.open(page, width, dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.title") != "run"
        assert browser.complaints() == []
        assert browser.requests() == [page.as_uri()]


@pytest.mark.slow
def test_five_thousand_rows_stay_quick(browser, tmp_path):
    """Only the question and the visible part of the list are elements, however many there are."""
    browser.open(write_review(make(5000), tmp_path / "many.html"))
    browser.run("document.getElementById('overview').open = true")
    browser.run("document.getElementById('list').scrollTop = 60000")
    for _ in range(30):
        browser.press("c", text="c")
    assert text(browser, "state").startswith("30 of 5000 decided")
    assert browser.run("document.querySelectorAll('*').length") < 400
    browser.run(
        "for (let k = 0; k < 600; k += 1) document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'k', bubbles: true }))"
    )
    assert text(browser, "state").startswith("630 of 5000 decided")
    assert browser.run("document.querySelectorAll('*').length") < 400
    assert browser.complaints() == []
