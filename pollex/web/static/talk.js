// A message to a system: how long it was typed, and how often something was taken back, go with it.
const form = document.getElementById("say");
let first = 0, edits = 0;

form?.addEventListener("input", (event) => {
  first ||= performance.now();
  if (event.inputType?.startsWith("delete")) edits += 1;
});
form?.addEventListener("submit", () => {
  form.elements.ms.value = first ? Math.round(performance.now() - first) : 0;
  form.elements.edits.value = edits;
});
form?.elements.text.focus();
