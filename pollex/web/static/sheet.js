// A sheet of questions by keys alone: a digit answers the question at hand and goes on to the next. Leaving a changed sheet asks first.
let changed = false;
const questions = [...document.querySelectorAll(".question")];
const at = () => Math.max(0, questions.findIndex((one) => one.contains(document.activeElement)));
const go = (n) => questions[n]?.querySelector("input")?.focus();

document.addEventListener("pollex:key", ({ detail }) => {
  if (!questions.length || detail.repeat) return;
  const n = at(), options = [...questions[n].querySelectorAll("input[type=radio]")];
  const option = options.find((one) => one.dataset.digit === detail.key);
  if (!option) return;
  detail.preventDefault();
  option.checked = changed = true;
  if (questions[n + 1]) go(n + 1);
  else document.querySelector(".sheet button.main")?.focus();
});
addEventListener("input", () => { changed = true; });
addEventListener("submit", ({ target }) => {
  changed = false;
  const shown = target.elements.namedItem("shown_ms");
  if (shown) shown.value = Math.round(performance.now());
});
addEventListener("beforeunload", (event) => changed && event.preventDefault());
go(0);
