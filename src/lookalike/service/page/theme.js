// Runs before the first paint, so that a dark screen does not flash. It is not a module, which would run later.
"use strict";
{
  let chosen = null;
  try { chosen = localStorage.getItem("lookalike-theme"); } catch { /* storage may be forbidden */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
