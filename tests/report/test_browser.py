"""The page in a browser: it sorts, searches, can be used by keyboard, and asks for nothing."""

import pytest

from browser import Browser, find_browser
from kernelweave import report
from quick import every
from report_models import MODELS, fitted, page

if find_browser() is None:
    pytest.skip(
        "no Chromium here; install the package chromium, or name one in KERNELWEAVE_BROWSER",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def browser():
    browser = Browser(find_browser())
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a function that writes the page of a model to a file."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name):
        path = folder / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        return path

    return write


# Texts of the first screen and of charts that end outside of the window, unless they scroll.
CLIPPED = """[...document.querySelectorAll('header *, main text')]
.filter(e => !e.closest('.scroll') && e.textContent.trim() && !e.closest('.unseen, title'))
.filter(e => { const r = e.getBoundingClientRect();
               return r.width && (r.left < -1 || r.right > window.innerWidth + 1); })
.map(e => e.textContent.trim().slice(0, 60))"""


def column(browser, section, number):
    """Return the cells of a column that are shown."""
    return browser.run(
        f"[...document.querySelector('#{section} table').tBodies[0].rows]"
        ".filter(r => r.offsetParent)"
        f".map(r => r.cells[{number}].textContent)"
    )


def click(browser, section, number):
    browser.run(f"document.querySelectorAll('#{section} th button')[{number}].click()")


def sorting(browser, section):
    return browser.run(
        f"[...document.querySelectorAll('#{section} table')[0].tHead.rows[0].cells]"
        ".map(c => c.getAttribute('aria-sort'))"
    )


def share(text):
    return float(text.split("%")[0])


@pytest.mark.parametrize("name", every(6, MODELS))
def test_pages_are_quiet_and_fit(browser, pages, name):
    for width, dark in ((1200, False), (390, True)):
        browser.open(pages(name), width, dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(CLIPPED) == []
        assert browser.complaints() == []
        assert browser.requests() == [pages(name).as_uri()]


def test_a_name_that_is_a_program_is_not_run(browser, tmp_path):
    path = tmp_path / "evil.html"
    text = report.to_html(fitted("mkl")[0])
    # As if escaping had failed: the policy of the page still keeps it from running.
    path.write_text(text.replace("<main", "<script>document.title = 'run'</script><main", 1))
    browser.open(path)
    assert browser.run("document.title") != "run"
    assert browser.complaints()


def test_tables_sort_by_any_column(browser, pages):
    browser.open(pages("mkl"))
    weights = [share(text) for text in column(browser, "kernels", 1)]
    assert weights == sorted(weights, reverse=True)
    assert sorting(browser, "kernels")[:2] == ["none", "descending"]
    click(browser, "kernels", 1)
    assert [share(text) for text in column(browser, "kernels", 1)] == sorted(weights)
    assert sorting(browser, "kernels")[:2] == ["none", "ascending"]
    click(browser, "kernels", 0)
    names = column(browser, "kernels", 0)
    assert sorting(browser, "kernels")[:2] == ["ascending", "none"]
    click(browser, "kernels", 0)
    assert column(browser, "kernels", 0) == names[::-1]


def test_numbers_sort_as_numbers(browser, pages):
    browser.open(pages("rules"))
    browser.run("document.querySelector('#rules .more').click()")
    click(browser, "rules", 2)
    weights = [float(text) for text in column(browser, "rules", 2)]
    assert min(weights) < 0 < max(weights)
    assert weights == sorted(weights, reverse=True)


def test_rules_are_searched(browser, pages):
    browser.open(pages("rules"))
    model = fitted("rules")[0]
    assert len(column(browser, "rules", 0)) == 15 < len(model.rules_)

    def search(words):
        browser.run(
            "(() => { const box = document.querySelector('#rules input[type=search]');"
            f"box.value = {words!r}; box.dispatchEvent(new Event('input')); }})()"
        )

    search("AGE")
    expected = [rule.text for rule in model.rules_ if "age" in rule.text]
    assert sorted(column(browser, "rules", 1)) == sorted(expected)
    found = browser.run("document.querySelector('#rules .found').textContent")
    assert found == f"{len(expected)} of {len(model.rules_)}"
    search("nothing like it")
    assert column(browser, "rules", 0) == []
    search("")
    assert len(column(browser, "rules", 1)) == 15
    browser.run("document.querySelector('#rules .more').click()")
    assert sorted(column(browser, "rules", 1)) == sorted(rule.text for rule in model.rules_)


def test_everything_can_be_reached_by_keyboard(browser, pages):
    browser.open(pages("rules"))
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    for _ in range(30):
        browser.press("Tab")
        if browser.run("document.activeElement.closest('#rules th') !== null"):
            break
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter", text="\r")
    assert sorting(browser, "rules")[0] == "ascending"


def test_only_what_scrolls_is_stopped_at(browser, pages):
    stops = "document.querySelectorAll('.scroll[tabindex]').length"
    browser.open(pages("mkl"), width=1200)
    assert browser.run(stops) == 0
    browser.open(pages("mkl"), width=390)
    assert browser.run(stops) > 0


def test_the_theme_follows_the_system_until_it_is_chosen(browser, pages):
    def paper():
        return browser.run("getComputedStyle(document.body).backgroundColor")

    browser.open(pages("mkl"), dark=False)
    light = paper()
    browser.open(pages("mkl"), dark=True)
    dark = paper()
    assert light != dark
    assert browser.run("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    browser.run("document.getElementById('theme').click()")
    assert paper() == light
    assert browser.run("document.getElementById('theme').getAttribute('aria-pressed')") == "false"
    browser.run("document.getElementById('theme').click()")
    assert paper() == dark


def test_print_shows_all_rows_on_white(browser, pages):
    browser.open(pages("rules"), dark=True)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.send("Emulation.setEmulatedMedia", media="print", features=[dark])
    assert browser.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(column(browser, "rules", 0)) == len(fitted("rules")[0].rules_)
    assert browser.run("document.querySelector('nav').offsetParent") is None


def test_the_page_is_complete_without_its_script(browser, pages):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages("rules"))
        assert len(column(browser, "rules", 0)) == len(fitted("rules")[0].rules_)
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
