// Makes an element ready to be written into; fields that have no text of their own are set at once.
function (text) {
  const type = this.localName === 'input' ? this.type : '';
  if (this.disabled || this.readOnly) return 'it cannot be written to';
  if (type === 'file') return 'files cannot be uploaded with this tool';
  if (['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'hidden'].includes(type)) return 'it is not a field for text; click it';
  if (this.localName === 'select') return 'it is a list; use `select`';
  if (['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'].includes(type)) {
    const before = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
    before.set.call(this, text);
    this.dispatchEvent(new Event('input', { bubbles: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    return this.value === text ? 'done' : `its value would be ${JSON.stringify(this.value)}: write it as this kind of field takes it`;
  }
  const isField = this.localName === 'textarea' || this.localName === 'input';
  if (!isField && !this.isContentEditable) return 'it is not a field for text';
  this.focus();
  if (isField) this.select();
  else getSelection().selectAllChildren(this);
  return 'ready';
}
