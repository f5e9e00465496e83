/* Alone: a life in a page that has nothing else, such as the frame below a notebook's cell. */

import { Life } from "./life.js";

/** @type {(name: string) => any} */
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const told = JSON.parse(document.getElementById("told").textContent);
const life = new Life(part("drawing"), part("parts"), part("viewer"));
life.draw(told);
life.list(told.parts);
