// Parts of pages that our server sent, put in place. The one place that turns text into markup.
const policy = globalThis.trustedTypes?.createPolicy("pollex", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

export const site = document.documentElement.dataset.site;

/** Elements of an HTML text that our server sent. */
function elementsOf(text) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(text);
  return template.content;
}

/** Says something to people who can't see what changed, at most every two seconds. */
let said = 0, waiting;
export function announce(text) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    said = Date.now();
    document.getElementById("status").textContent = text;
  }, Math.max(0, said + 2000 - Date.now()));
}

/** Puts new content into an element; focus stays on the same item, else goes to the page's heading. */
export function place(element, text) {
  const focused = document.activeElement;
  const inside = element.contains(focused) && focused !== element;
  const held = inside ? focused.id || focused.getAttribute("href") : "";
  element.replaceChildren(elementsOf(text));
  if (!inside) return;
  const same = [...element.querySelectorAll("[id], a[href]")].find((one) => held && (one.id || one.getAttribute("href")) === held);
  (same ?? document.querySelector("h1"))?.focus({ preventScroll: true });
}

/** Fetches a part; null while it is as it was (304). A server that doesn't answer is said in a bar. */
export async function fetchPart(address, options = {}) {
  try {
    const answer = await fetch(address, { ...options, headers: { "X-Pollex-Site": site, ...options.headers } });
    offline(false);
    return answer;
  } catch (error) {
    if (error.name !== "AbortError") offline(true);
    throw error;
  }
}

/** Sends JSON; says what went wrong, keeps what was typed. */
export async function send(address, values, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetchPart(address, { method, headers, body: JSON.stringify(values) });
  const told = await answer.json();
  if (!answer.ok) throw new Error([told.error, told.remedy].filter(Boolean).join(": "));
  return told;
}

/** The JSON lines of an answer, each as it comes. */
export async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (text + value).split("\n");
    text = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

let bar, again;
function offline(is) {
  if (!is) {
    if (bar) announce("The server answers again.");
    clearInterval(again);
    bar?.remove();
    return (bar = undefined);
  }
  if (bar) return;
  again = setInterval(() => fetch("/api/health").then(() => offline(false), () => {}), 2000);
  bar = document.createElement("p");
  bar.className = "offline";
  bar.setAttribute("role", "alert");
  bar.textContent = "The server does not answer. What you typed stays here; it is asked again every two seconds.";
  document.body.prepend(bar);
}
