// A range dragged on a histogram or a strip: its ends go into the address. The fields beside it do the same without.
const SVG = "http://www.w3.org/2000/svg";

for (const box of document.querySelectorAll("[data-range]")) {
  const drawing = box.querySelector("svg");
  if (drawing) watch(box, drawing);
}

function watch(box, drawing) {
  const { x: left, width, height } = drawing.viewBox.baseVal, inset = Number(box.dataset.inset ?? 0);
  const first = Number(box.dataset.first), last = Number(box.dataset.last), [from, to] = box.dataset.range.split(" ");
  const mark = document.createElementNS(SVG, "rect");
  let began = null;

  const at = (event) => {
    const place = drawing.getBoundingClientRect(), share = (event.clientX - place.left) / place.width;
    return Math.min(Math.max(left + share * width, left + inset), left + width - inset);
  };
  const value = (x) => first + ((x - left - inset) / (width - 2 * inset)) * (last - first);

  drawing.classList.add("ranged");
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    drawing.setPointerCapture(event.pointerId);
    began = at(event);
    for (const [name, one] of Object.entries({ x: began, y: 0, width: 0, height, class: "range" })) mark.setAttribute(name, one);
    drawing.append(mark);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (began === null) return;
    mark.setAttribute("x", Math.min(began, at(event)));
    mark.setAttribute("width", Math.abs(at(event) - began));
  });
  drawing.addEventListener("pointercancel", () => { began = null; mark.remove(); });
  drawing.addEventListener("pointerup", (event) => {
    if (began === null) return;
    const ends = [began, at(event)].sort((a, b) => a - b);
    began = null;
    if (ends[1] - ends[0] < width / 100) return mark.remove();
    const address = new URL(location.href);
    address.searchParams.set(from, value(ends[0]).toFixed(3));
    address.searchParams.set(to, value(ends[1]).toFixed(3));
    for (const name of ["at", "version"]) address.searchParams.delete(name);
    location.assign(address);
  });
}
