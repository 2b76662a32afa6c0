// A range dragged on a histogram or a strip: its ends go into the address. The fields beside it do the same without.
// Strips are drawn anew while a run goes on, so the page listens, and not each drawing.
const SVG = "http://www.w3.org/2000/svg";
let drag = null;

document.documentElement.classList.add("ranged");
document.addEventListener("pointerdown", (event) => {
  const box = event.target.closest?.("[data-range]"), drawing = box?.querySelector("svg");
  if (event.button || !drawing?.contains(event.target)) return;
  event.preventDefault();
  drawing.setPointerCapture(event.pointerId);
  const mark = document.createElementNS(SVG, "rect"), began = at(box, drawing, event);
  const { height } = drawing.viewBox.baseVal;
  for (const [name, one] of Object.entries({ x: began, y: 0, width: 0, height, class: "range" })) mark.setAttribute(name, one);
  drawing.append(mark);
  drag = { box, drawing, began, mark };
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const now = at(drag.box, drag.drawing, event);
  drag.mark.setAttribute("x", Math.min(drag.began, now));
  drag.mark.setAttribute("width", Math.abs(now - drag.began));
});
document.addEventListener("pointercancel", () => { drag?.mark.remove(); drag = null; });
document.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { box, drawing, began, mark } = drag, ends = [began, at(box, drawing, event)].sort((a, b) => a - b);
  drag = null;
  if (ends[1] - ends[0] < drawing.viewBox.baseVal.width / 100) return mark.remove();
  const address = new URL(location.href);
  box.dataset.range.split(" ").forEach((name, n) => address.searchParams.set(name, value(box, drawing, ends[n]).toFixed(3)));
  for (const name of ["at", "version"]) address.searchParams.delete(name);
  location.assign(address);
});

/** Where on a drawing a pointer is, in the drawing's units. */
function at({ dataset }, drawing, event) {
  const { x: left, width } = drawing.viewBox.baseVal, inset = Number(dataset.inset ?? 0);
  const place = drawing.getBoundingClientRect(), share = (event.clientX - place.left) / place.width;
  return Math.min(Math.max(left + share * width, left + inset), left + width - inset);
}

/** What a place on a drawing stands for. */
function value({ dataset }, drawing, x) {
  const { x: left, width } = drawing.viewBox.baseVal, inset = Number(dataset.inset ?? 0), first = Number(dataset.first);
  return first + ((x - left - inset) / (width - 2 * inset)) * (Number(dataset.last) - first);
}
