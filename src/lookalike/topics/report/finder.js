"use strict";
(function () {
  var cards = Array.prototype.slice.call(document.querySelectorAll(".card[id^='c']"));
  var everywhere = document.getElementById("find");
  function filter(card, wanted) {
    var matches = 0;
    Array.prototype.forEach.call(card.querySelectorAll(".documents li"), function (line) {
      line.hidden = line.textContent.toLowerCase().indexOf(wanted) < 0;
      matches += line.hidden ? 0 : 1;
    });
    card.querySelector(".told").textContent = wanted ? matches.toLocaleString("en") + " found" : "";
    return matches;
  }
  function open(card) {
    var list = card.querySelector("details");
    if (list) { list.open = true; }
  }
  cards.forEach(function (card) {
    var box = card.querySelector(".documents input");
    if (!box) { return; }
    box.addEventListener("input", function () { filter(card, box.value.toLowerCase()); });
  });
  everywhere.addEventListener("input", function () {
    var wanted = everywhere.value.toLowerCase(), topics = 0;
    cards.forEach(function (card) {
      if (!card.querySelector(".documents")) { return; }
      card.querySelector(".documents input").value = everywhere.value;
      card.hidden = filter(card, wanted) === 0 && wanted !== "";
      if (!card.hidden && wanted) { open(card); }
      topics += card.hidden ? 0 : 1;
    });
    document.getElementById("told").textContent =
      wanted ? "in " + topics.toLocaleString("en") + " of " + cards.length + " clusters" : "";
  });
  function follow() {
    var card = document.getElementById(location.hash.slice(1));
    if (card && cards.indexOf(card) >= 0) {
      card.hidden = false;
      open(card);
      card.scrollIntoView();
    }
  }
  window.addEventListener("hashchange", follow);
  Array.prototype.forEach.call(document.querySelectorAll(".finder"), function (finder) {
    finder.hidden = false;
  });
  follow();
})();
