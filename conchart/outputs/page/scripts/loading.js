/* Says so when the page cannot be drawn. It runs before the page's script and in every browser: ECMAScript 5. */

(function () {
  var MADE_AGAIN = "Copy the file again from where it was made, or make it again with conchart.";
  var COMPLETE = " The text below is complete without the charts.";
  var page = document.documentElement;

  /**
   * A plain message at the top of the page; only the first is shown.
   * @param {string} why
   * @param {string} advice
   */
  function tell(why, advice) {
    var box = document.createElement("p");
    if (page.getAttribute("data-ready") || page.getAttribute("data-failed")) return;
    page.setAttribute("data-failed", "true");
    box.id = "failed";
    box.setAttribute("role", "alert");
    box.appendChild(document.createElement("b")).appendChild(document.createTextNode("The charts of this page cannot be drawn: " + why + "."));
    box.appendChild(document.createTextNode(" " + advice));
    document.body.insertBefore(box, document.body.firstChild);
  }

  /* What the page's data needs: Chrome and Edge 103, Firefox 113, Safari 16.4. */
  function canUnpack() {
    try {
      return Boolean(new DecompressionStream("deflate-raw"));
    } catch (error) {
      return false;
    }
  }

  /** @param {any} error */
  function failed(error) {
    if (!canUnpack()) tell("this browser is too old", "Open the file in Chrome or Edge 103, Firefox 113, Safari 16.4, or any later version of these." + COMPLETE);
    else if (error && error.name === "Damaged") tell("the file is damaged (" + error.message + ")", MADE_AGAIN + COMPLETE);
    else tell("its script failed (" + error + ")", "Open the file in a current version of Chrome, Edge, Firefox or Safari, without extensions that change pages. If that fails too, make the file again with conchart." + COMPLETE);
  }

  // Browsers report some events, as that of a ResizeObserver, without an error: these do no harm.
  window.addEventListener("error", function (event) { if (event.error) failed(event.error); });
  window.addEventListener("unhandledrejection", function (event) { failed(event.reason); });
  document.addEventListener("DOMContentLoaded", function () {
    if (!document.getElementById("complete")) tell("the file is damaged (its end is missing)", MADE_AGAIN);
    else if (document.getElementById("data") && !page.getAttribute("data-started")) failed({ name: "Damaged", message: "its script was changed" });
  });
}());
