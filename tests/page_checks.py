"""What is wrong with the layout of a page in a browser: texts that cover each other, and texts that are cut off."""

#: All texts that are seen, with the boxes of their lines. An outline below a label of a chart is not a text of its own.
_TEXTS = """
const texts = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  const said = node.textContent.trim();
  if (!said || parent.closest('script, style, noscript, option, .skip, .hint')) continue;
  if (parent.closest('text') && parent.closest('text').getAttribute('stroke')) continue;
  if (!parent.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) texts.push({ said, box, parent });
}
"""

_OVERLAPS = (
    """() => {"""
    + _TEXTS
    + """
texts.sort((a, b) => a.box.top - b.box.top);
const found = [];
texts.forEach((one, index) => {
  for (let next = index + 1; next < texts.length && texts[next].box.top < one.box.bottom - 1.5; next++) {
    const a = one.box, b = texts[next].box;
    if (a.left < b.right - 1.5 && b.left < a.right - 1.5) found.push([one.said, texts[next].said]);
  }
});
return found;
}"""
)

_CUT = (
    """() => {"""
    + _TEXTS
    + """
const found = [];
for (const { said, box, parent } of texts) {
  if (box.left < -1 || box.right > document.documentElement.clientWidth + 1) found.push([said, 'window']);
  for (let around = parent; around && around !== document.body; around = around.parentElement) {
    if (around.tagName === 'g' || getComputedStyle(around).overflowX === 'visible') continue;
    const frame = around.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push([said, around.tagName]);
  }
}
return found;
}"""
)

_FONTS = """() => {
const texts = [...document.querySelectorAll('.chart svg text')].filter(text => text.checkVisibility());
return [...new Set(texts.map(text => {
  const svg = text.ownerSVGElement;
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return Math.round(10 * parseFloat(getComputedStyle(text).fontSize) * scale) / 10;
}))];
}"""


def overlaps(page):
    """Pairs of texts of which one covers the other."""
    return page.evaluate(_OVERLAPS)


def cut_off(page):
    """Texts that reach beyond the window, or beyond a part of the page that hides what does not fit."""
    return page.evaluate(_CUT)


def chart_fonts(page):
    """The sizes of all text in the charts that are shown, in pixels of the screen."""
    return page.evaluate(_FONTS)
