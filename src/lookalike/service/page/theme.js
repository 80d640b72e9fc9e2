// Before anything is drawn, so that a dark screen does not flash: this is no module, which would wait.
"use strict";
{
  let chosen = null;
  try { chosen = localStorage.getItem("lookalike-theme"); } catch { /* storage may be forbidden */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
