/* Switches: what is asked for in addition to the program. */

export class Switches {
  /** @param {HTMLFormElement} form
   * @param {() => void} changed */
  constructor(form, changed) {
    this.form = form;
    /** @type {HTMLInputElement[]} */
    this.passes = [...form.querySelectorAll("[name=pass]")].map((box) => /** @type {HTMLInputElement} */ (box));
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** @param {string} name
   * @returns {any} a switch */
  field(name) {
    return this.form.elements.namedItem(name);
  }

  get values() {
    return {
      optimiser: this.field("optimiser").value,
      batch_size: Number(this.field("batch_size").value),
      devices: Number(this.field("devices").value),
      xla: this.field("xla").checked,
      without: this.passes.filter((pass) => !pass.checked).map((pass) => pass.value),
    };
  }

  set values(asked) {
    for (const name of ["optimiser", "batch_size", "devices"]) this.field(name).value = asked[name];
    this.field("xla").checked = asked.xla === true;
    for (const pass of this.passes) pass.checked = !asked.without.includes(pass.value);
  }
}
