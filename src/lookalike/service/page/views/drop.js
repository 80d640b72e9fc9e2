// Files that are dropped on an element.

export function dropped(place, take) {
  let depth = 0;
  const over = (change) => {
    depth = Math.max(0, depth + change);
    place.classList.toggle("over", depth > 0);
  };
  const has = (event) => event.dataTransfer?.types.includes("Files");
  place.addEventListener("dragenter", (event) => has(event) && (event.preventDefault(), over(1)));
  place.addEventListener("dragover", (event) => has(event) && event.preventDefault());
  place.addEventListener("dragleave", (event) => has(event) && over(-1));
  place.addEventListener("drop", (event) => {
    if (!has(event)) return;
    event.preventDefault();
    depth = 0;
    over(0);
    if (event.dataTransfer.files.length) take(event.dataTransfer.files);
  });
}
