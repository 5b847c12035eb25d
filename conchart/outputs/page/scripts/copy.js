/* Text to the clipboard. */

import { el } from "./format.js";

/* How long a button says that it has copied, in ms. */
const CONFIRMED_MS = 1200;

/**
 * Put text on the clipboard; browsers that keep it from pages on disk still let a selection be copied.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = /** @type {HTMLTextAreaElement} */ (el("textarea", { class: "unseen-field", "aria-hidden": "true" }));
    field.value = text;
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}

/**
 * A button that copies, and says so.
 * @param {string} title
 * @param {() => string} text
 * @param {string} shown
 */
export function copyButton(title, text, shown) {
  const button = el("button", { type: "button", class: "copy", title, "aria-label": title }, shown);
  button.addEventListener("click", async (/** @type {Event} */ event) => {
    event.stopPropagation();
    await copyText(text());
    button.textContent = "✓";
    setTimeout(() => { button.textContent = shown; }, CONFIRMED_MS);
  });
  return button;
}
