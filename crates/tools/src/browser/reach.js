// Brings an element into sight, and says where it is and what a click at its middle would hit.
function (mayStopForms) {
  this.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  const box = this.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const hit = this.getRootNode().elementFromPoint?.(x, y) ?? null;
  const isHit = hit !== null && (hit === this || this.contains(hit) || hit.contains(this) && hit.localName === 'label');
  const control = (isHit ? hit : this).closest?.('button, input') ?? this.control ?? null;
  const submits = Boolean(control?.form && (control.type === 'submit' || control.type === 'image'));
  if (mayStopForms && !globalThis.stopForms) {
    globalThis.stopForms = (event) => {
      globalThis.stoppedForm = event.target?.action ?? location.href;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    window.addEventListener('submit', globalThis.stopForms, { capture: true });
  }
  return { isHit, submits, disabled: Boolean(this.disabled), tag: this.localName, type: this.type ?? '' };
}
