// Chooses an option of a list by what it shows or by its value.
function (text) {
  if (this.localName !== 'select') return { problem: 'it is not a list; click it, then click the option' };
  const wanted = text.trim();
  const options = [...this.options];
  const option = options.find((one) => one.label.trim() === wanted || one.value === wanted)
    ?? options.find((one) => one.label.trim().toLowerCase() === wanted.toLowerCase());
  if (!option || option.disabled) return { problem: `there is no option ${JSON.stringify(wanted)}; there are: ${options.slice(0, 40).map((one) => JSON.stringify(one.label)).join(', ')}` };
  if (this.multiple) option.selected = !option.selected;
  else this.value = option.value;
  this.dispatchEvent(new Event('input', { bubbles: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
  return { chosen: [...this.selectedOptions].map((one) => one.label).join(', ') };
}
