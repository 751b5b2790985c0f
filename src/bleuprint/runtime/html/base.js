"use strict";

// An element with these properties; text never becomes markup.
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A choice among [value, text] pairs.
function choice(pairs, properties = {}) {
  return make("select", properties,
    ...pairs.map(([value, textContent]) => make("option", { value, textContent })));
}
