"use strict";
(function () {
  var rows = Array.prototype.slice.call(document.querySelectorAll("#every tbody tr"));
  var box = document.getElementById("find"), told = document.getElementById("told");
  var back = document.getElementById("back"), on = document.getElementById("on");
  var size = 50, page = 0, found = rows;
  function counted(number) { return number.toLocaleString("en"); }
  function show() {
    rows.forEach(function (row) { row.hidden = true; });
    found.slice(page * size, (page + 1) * size).forEach(function (row) { row.hidden = false; });
    var last = Math.min(found.length, (page + 1) * size);
    told.textContent = found.length
      ? counted(page * size + 1) + " to " + counted(last) + " of " + counted(found.length)
      : "no matches";
    back.disabled = page === 0;
    on.disabled = last === found.length;
  }
  function turn(by) { page += by; show(); }
  box.addEventListener("input", function () {
    var wanted = box.value.toLowerCase();
    found = rows.filter(function (row) {
      return row.textContent.toLowerCase().indexOf(wanted) >= 0;
    });
    page = 0;
    show();
  });
  back.addEventListener("click", function () { turn(-1); });
  on.addEventListener("click", function () { turn(1); });
  document.getElementById("finder").hidden = false;
  show();
})();
