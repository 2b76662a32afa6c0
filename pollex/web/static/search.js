// Words in every turn: hits are shown while the texts are read; the list itself comes when all are. Without script it comes at once.
import { announce, fetchPart, linesOf } from "./part.js";

const form = document.querySelector("form[role=search]"), box = document.getElementById("search"), MOST = 20;
let asked;

form?.addEventListener("submit", (event) => {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  if (query.get("words") !== "all" || !query.get("q")) return;
  event.preventDefault();
  asked?.abort();
  asked = new AbortController();
  search(query, asked);
});
box?.querySelector("button").addEventListener("click", () => asked?.abort());

async function search(query, mine) {
  const [bar, words, list] = ["progress", "span", "ul"].map((name) => box.querySelector(name));
  let last = { done: 0, total: 0, found: 0 };
  box.hidden = false;
  bar.removeAttribute("value");
  words.textContent = "Looking in every turn";
  list.replaceChildren();
  try {
    const answer = await fetchPart(`/api/conversations/search?${query}&n=${MOST}`, { signal: mine.signal });
    if (!answer.ok) return location.assign(`${form.action}?${query}`);
    for await (const line of linesOf(answer.body)) {
      if (line.ended) return location.assign(`${form.action}?${query}`);
      if (line.hit) {
        list.append(item(line.hit, query));
        continue;
      }
      last = line;
      bar.max = line.total;
      bar.value = line.done;
      words.textContent = said(line);
      announce(said(line));
    }
  } catch {
    if (!mine.signal.aborted || mine !== asked) return;
    words.textContent = `Stopped. ${said(last)}`;
    announce(words.textContent);
  }
}

const said = ({ done, total, found }) => `${found.toLocaleString("en")} found in ${done.toLocaleString("en")} of ${total.toLocaleString("en")} texts`;

function item(hit, query) {
  const row = document.createElement("li"), link = document.createElement("a");
  link.href = `/conversation?${new URLSearchParams({ run: query.get("run"), id: hit.id })}`;
  link.textContent = hit.opening || hit.id;
  row.append(link);
  return row;
}
