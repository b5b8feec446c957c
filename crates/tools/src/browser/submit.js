// Submits the form of an element, as its own button would; says what is left to do by hand.
function () {
  const form = this.form ?? this.closest?.('form');
  if (!form) {
    this.focus?.();
    return 'press enter';
  }
  const isButton = this.type === 'submit' || this.type === 'image';
  const button = isButton ? this : [...form.elements].find((one) => one.type === 'submit' || one.type === 'image');
  if (button?.disabled) return 'its button is disabled';
  if (!form.noValidate && !button?.formNoValidate && !form.checkValidity()) {
    const wrong = [...form.elements].filter((one) => one.willValidate && !one.validity.valid)
      .map((one) => `${one.name || one.id || one.type}: ${one.validationMessage}`);
    return `it is not filled in as it asks: ${wrong.join('; ')}`;
  }
  form.requestSubmit(button ?? null);
  return 'done';
}
