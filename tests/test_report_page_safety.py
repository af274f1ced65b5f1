"""The page in a real Chromium: text of a run is escaped, the file needs no others, and it fits every window."""

import re
import urllib.parse

import pytest

from report_runs import HOSTILE

# --- escaping -----------------------------------------------------------------------


def test_markup_in_every_string_is_escaped(open_page, pages):
    page = open_page("hostile")
    assert page.title().startswith("What flexibility costs: </script><script>")
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.evaluate("[...document.querySelectorAll('*')].every(one => !one.getAttribute('onerror'))")
    assert HOSTILE in page.locator("td.system").first.inner_text()
    assert HOSTILE in page.locator(".card:visible .winner").inner_text()
    assert HOSTILE in page.locator(".matrix").inner_text()
    assert HOSTILE in page.locator(".bars:visible").inner_text()
    page.locator("#table tbody tr").first.hover()
    assert HOSTILE in page.locator("#hint").inner_text()
    for index in range(page.locator("#table tbody tr").count()):
        page.locator("#table tbody tr").nth(index).click()
        assert HOSTILE in page.get_by_role("dialog").inner_text()
        page.keyboard.press("Escape")
    assert "owned" not in page.evaluate("document.title.replaceAll(\"document.title='owned'\", '')")


def test_a_hostile_address_is_only_an_address(open_page):
    text = urllib.parse.quote(HOSTILE)
    page = open_page("two", f"#filter={text}&sort=constructor&chart=__proto__&row={text}")
    assert page.get_by_label("Filter").input_value() == HOSTILE
    assert page.locator("img").count() == 0


def test_the_policy_stops_a_script_that_is_not_the_pages_own(browser, pages, tmp_path):
    """Even if escaping failed, a script inserted into the page would not run."""
    text = pages["two"].read_text()
    (tmp_path / "forced.html").write_text(text.replace("<main>", "<main><script>document.title = 'owned'</script>", 1))
    page = browser.new_page()
    page.goto((tmp_path / "forced.html").as_uri())
    assert page.title() != "owned"
    assert page.locator("#table tbody tr").count() == 11  # its own script still is
    page.close()


def test_the_file_needs_no_others(pages):
    text = pages["two"].read_text()
    outside = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", text)
    assert [one for one in outside if not one.startswith(("#", "data:"))] == []
    assert "@import" not in text
    assert "url(" not in text


# --- looks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_readers_choice_of_light_or_dark(open_page, scheme):
    page = open_page(color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    label = page.locator('figure:not([hidden]) text[fill="#59636e"]').first
    ink = label.evaluate("text => getComputedStyle(text).fill")
    assert (ground, ink) == {
        "light": ("rgb(255, 255, 255)", "rgb(89, 99, 110)"),
        "dark": ("rgb(13, 17, 23)", "rgb(154, 164, 175)"),
    }[scheme]


def test_print_is_light_and_without_controls(open_page):
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#choose").is_visible()
    assert page.locator(".card:visible").count() == 1
    assert page.locator("#table").is_visible()


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_the_page_is_never_wider_than_its_window(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
