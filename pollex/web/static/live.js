// Parts that tell how far a run is: asked again every second while the page is seen, until the run has ended.
// A quiet one leaves it to another to say so, and none changes under a range that is being dragged.
import { announce, fetchPart, place } from "./part.js";

for (const part of document.querySelectorAll("[data-live]")) {
  let tag = "";
  const timer = setInterval(async () => {
    if (document.hidden || part.querySelector(".range")) return;
    let answer, text;
    try {
      answer = await fetchPart(part.dataset.live, { headers: tag ? { "If-None-Match": tag } : {} });
      text = await answer.text();
    } catch { return; }
    if (answer.status === 304) return;
    tag = answer.headers.get("ETag") ?? "";
    place(part, text);
    if (!answer.headers.get("X-Pollex-Ended")) return;
    clearInterval(timer);
    if ("quiet" in part.dataset) return;
    if (answer.headers.get("X-Pollex-Ended") === "again") return location.reload();
    announce("The run has ended.");
    const again = document.createElement("a");
    again.href = location.href;
    again.className = "button";
    again.textContent = "It has ended: load the page again";
    part.append(again);
  }, 1000);
}
