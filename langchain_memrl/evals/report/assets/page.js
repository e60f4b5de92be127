"use strict";
// Tables sort by a click on a column's name; numbers start with the largest, missing ones stay last.
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const table = head.closest("table");
    const place = [...head.parentElement.children].indexOf(head);
    const numbers = head.dataset.type === "number";
    const before = head.getAttribute("aria-sort");
    const first = numbers ? "descending" : "ascending";
    const other = numbers ? "ascending" : "descending";
    const order = before === first ? other : first;
    for (const one of head.parentElement.children) one.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => row.children[place].dataset.value;
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((left, right) => {
      const a = value(left), b = value(right);
      if (a === "" || b === "") return (a === "") - (b === "");
      return sign * (numbers ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    body.append(...rows);
  });
}
// Rows stay that contain every word that was typed.
const filter = document.getElementById("filter");
const rows = [...document.querySelectorAll("#every tbody tr")];
const names = rows.map((row) => (row.dataset.name || "").toLowerCase());
const show = () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  rows.forEach((row, place) => {
    row.hidden = !words.every((word) => names[place].includes(word));
    count += !row.hidden;
  });
  document.getElementById("count").textContent = `${count} of ${rows.length} rows`;
};
if (filter) {
  filter.addEventListener("input", show);
  show();
}
