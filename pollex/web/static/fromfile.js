// A text from a file of the visitor's, put into a field as if it had been typed. Without a script it is pasted.
for (const chosen of document.querySelectorAll("[data-into]")) {
  const field = document.getElementById(chosen.dataset.into);
  chosen.addEventListener("change", async () => {
    if (!chosen.files[0]) return;
    field.value = await chosen.files[0].text();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
