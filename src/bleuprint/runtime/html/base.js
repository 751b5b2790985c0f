"use strict";

// Returns a new element with these properties and children; text never becomes markup.
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Returns a menu with an option for each pair [value, text].
function choice(pairs, properties = {}) {
  return make("select", properties,
    ...pairs.map(([value, textContent]) => make("option", { value, textContent })));
}
