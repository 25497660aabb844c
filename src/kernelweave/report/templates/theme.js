// Switches between light and dark, on every page.
function prepareTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = window.localStorage.getItem("kernelweave-theme");
  } catch (error) {
    chosen = null; // a page from a file may have no storage; the system's theme is then used
  }

  function show() {
    const dark = chosen ? chosen === "dark" : system.matches;
    if (chosen) root.dataset.theme = chosen;
    button.setAttribute("aria-pressed", String(dark));
  }

  button.addEventListener("click", function () {
    const dark = chosen ? chosen === "dark" : system.matches;
    chosen = dark ? "light" : "dark";
    show();
    try {
      window.localStorage.setItem("kernelweave-theme", chosen);
    } catch (error) {
      return; // the choice then lasts as long as the page is open
    }
  });
  system.addEventListener("change", show);
  show();
}

prepareTheme();
