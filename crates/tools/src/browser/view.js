// What a reader of one document sees, as lines; or the element that a line names. Runs apart from the page's own scripts.
// The same document gives the same names: a name follows from what an element is, is called, and how many are like it.
(given) => {
  const BLOCKS = new Set(['address', 'article', 'aside', 'blockquote', 'body', 'dd', 'details', 'dialog', 'div', 'dl', 'dt',
    'fieldset', 'figcaption', 'figure', 'footer', 'form', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'header', 'hr', 'li', 'main',
    'nav', 'ol', 'p', 'pre', 'section', 'table', 'td', 'th', 'tr', 'ul', 'br', 'iframe', 'frame']);
  const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'head', 'svg', 'math', 'object', 'embed']);
  const ROLES = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'textbox', 'searchbox', 'combobox', 'listbox',
    'option', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'tab', 'slider', 'spinbutton', 'treeitem', 'clickable',
    'file']);
  const clean = (text, width) => {
    const plain = (text ?? '').slice(0, width * 8).replace(/\s+/g, ' ').trim();
    return plain.length > width ? plain.slice(0, width) + '…' : plain;
  };
  const hash = (text) => {
    let sum = 2166136261;
    for (const char of text) sum = Math.imul(sum ^ char.codePointAt(0), 16777619) >>> 0;
    return (sum % 1679616).toString(36).padStart(4, '0');
  };
  const inputRole = (type) => ({
    submit: 'button', button: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
    range: 'slider', number: 'spinbutton', search: 'searchbox', file: 'file', hidden: '',
  })[type] ?? 'textbox';
  const isVisible = (element) => element.checkVisibility?.({ checkVisibilityCSS: true }) ?? true;
  const roleOf = (element) => {
    const said = element.getAttribute('role')?.trim().toLowerCase().split(/\s+/)[0];
    if (said && (ROLES.has(said) || said === 'heading')) return said;
    const tag = element.localName;
    if (tag === 'a' || tag === 'area') return element.hasAttribute('href') ? 'link' : '';
    if (tag === 'button' || tag === 'summary') return 'button';
    if (tag === 'input') return inputRole(element.type);
    if (tag === 'textarea') return 'textbox';
    if (tag === 'select') return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
    if (/^h[1-6]$/.test(tag)) return 'heading';
    if (tag === 'img') return element.alt ? 'image' : '';
    if (tag === 'label') return element.control && !isVisible(element.control) ? 'clickable' : '';
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return 'textbox';
    if (element.hasAttribute('onclick') || element.hasAttribute('tabindex') && element.tabIndex >= 0) return 'clickable';
    if (tag !== 'body' && getComputedStyle(element).cursor === 'pointer'
      && getComputedStyle(element.parentElement ?? element).cursor !== 'pointer') return 'clickable';
    return '';
  };
  // What a label says, without what its own field holds.
  const labelText = (label) => {
    const texts = document.createTreeWalker(label, NodeFilter.SHOW_TEXT, (text) =>
      text.parentElement?.closest('select, textarea, button, script, style') ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    let said = '';
    while (texts.nextNode() && said.length < 1000) said += texts.currentNode.data;
    return said;
  };
  const nameOf = (element, role) => {
    const named = (element.getAttribute('aria-labelledby') ?? '').split(/\s+/).filter(Boolean)
      .map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? '').join(' ');
    const field = ['textbox', 'searchbox', 'combobox', 'listbox', 'checkbox', 'radio', 'slider', 'spinbutton', 'file']
      .includes(role);
    const labels = element.labels ? [...element.labels].map(labelText).join(' ') : '';
    const button = element.localName === 'input' && role === 'button'
      ? element.value || element.alt || ({ submit: 'Submit', reset: 'Reset' })[element.type] || '' : '';
    const inner = field && element.localName !== 'button' ? '' : element.textContent;
    const picture = element.querySelector?.('img[alt], [aria-label], svg title');
    const candidates = [named, element.getAttribute('aria-label'), labels, button, element.alt, inner,
      picture?.alt, picture?.getAttribute?.('aria-label'), picture?.textContent,
      element.title, element.placeholder, element.getAttribute('name'), element.id];
    for (const candidate of candidates) {
      const text = clean(candidate, 80);
      if (text) return text;
    }
    return '';
  };
  const submitter = (element) => {
    const control = element.localName === 'label' ? element.control : element.closest?.('button, input');
    return control?.form && (control.type === 'submit' || control.type === 'image') ? control : null;
  };
  const valueOf = (control) => {
    if (control.type === 'password') return control.value ? '(hidden)' : '';
    if (control.type === 'checkbox' || control.type === 'radio') return control.checked ? control.value : null;
    if (control.type === 'file') return [...control.files].map((file) => file.name).join(', ');
    return control.value;
  };
  const describe = (form, button) => {
    const fields = [];
    for (const control of form.elements) {
      if (!control.name || control.type === 'hidden' || control.disabled || submitter(control)) continue;
      const value = valueOf(control);
      if (value !== null && value !== undefined && fields.length < 60) fields.push([clean(control.name, 60), clean(String(value), 500)]);
    }
    return {
      method: (button?.getAttribute('formmethod') || form.getAttribute('method') || 'get').toUpperCase(),
      url: button?.hasAttribute('formaction') ? button.formAction : new URL(form.getAttribute('action') || '', document.baseURI).href,
      fields,
    };
  };

  const view = { title: clean(document.title, 120), url: location.href, lines: [], elements: [], more: 0 };
  const seen = new Map();
  const taken = new Set();
  let run = '';
  let nodes = 0;
  const put = (line) => {
    if (view.lines.length < given.maxLines) view.lines.push(line);
    else view.more += 1;
  };
  const flush = () => {
    const text = clean(run, 2000);
    run = '';
    if (text) put({ text });
  };
  const refOf = (role, name) => {
    const key = `${role} ${name}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    let ref = given.prefix + role[0] + hash(count === 1 ? key : `${key} ${count}`);
    while (taken.has(ref)) ref += 'x';
    taken.add(ref);
    return ref;
  };
  const describeElement = (element, role, name, ref) => {
    const line = { role, name, ref };
    const form = element.form ?? element.closest?.('form');
    const button = submitter(element);
    if (role === 'link') line.href = clean(element.href ?? '', 300);
    if (element.localName === 'select') {
      line.value = clean([...element.selectedOptions].map((option) => option.label).join(', '), 80);
      line.options = [...element.options].slice(0, 20).map((option) => clean(option.label, 40));
    } else if (role === 'checkbox' || role === 'radio' || role === 'switch') {
      line.checked = element.checked ?? element.getAttribute('aria-checked') === 'true';
    } else if (['textbox', 'searchbox', 'spinbutton', 'slider', 'file'].includes(role)) {
      const value = 'value' in element ? valueOf(element) : element.textContent;
      if (value) line.value = clean(String(value), 80);
    }
    if (element.disabled || element.getAttribute('aria-disabled') === 'true') line.disabled = true;
    if (button) line.submits = true;
    if (form) view.elements.push({ ref, role, name, submits: Boolean(button), form: describe(form, button) });
    else view.elements.push({ ref, role, name, submits: false, form: null });
    return line;
  };

  // Depth first, without recursion: pages nest as deep as they like.
  const stack = [document.body ?? document.documentElement];
  const after = Symbol('after');
  while (stack.length > 0) {
    const node = stack.pop();
    if (node === after) { flush(); continue; }
    if (!node) continue;
    nodes += 1;
    if (nodes > given.maxNodes) { view.more += stack.length + 1; break; }
    if (node.nodeType === Node.TEXT_NODE) {
      if (run.length < 4000) run += node.data;
      continue;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.localName)) continue;
    if (!isVisible(node) && getComputedStyle(node).display !== 'contents') continue;
    if (node.getAttribute('aria-hidden') === 'true' && !node.querySelector('input, button, a[href]')) continue;
    const role = roleOf(node);
    const isBlock = BLOCKS.has(node.localName);
    if (role === 'heading') {
      flush();
      put({ role, name: nameOf(node, role), level: Number(node.localName[1]) || undefined });
      if (!node.querySelector('a[href], button, input')) continue;
      for (const child of [...node.querySelectorAll('a[href], button, input')].reverse()) stack.push(child);
      continue;
    }
    if (role === 'image') { flush(); put({ role, name: clean(node.alt, 80) }); continue; }
    if (ROLES.has(role)) {
      const name = nameOf(node, role);
      const ref = refOf(role, name);
      if (given.find === ref) return node;
      flush();
      put(describeElement(node, role, name, ref));
      // What stands in a region that can be clicked can be clicked on its own; the text of others is their name.
      if (role !== 'clickable' || !node.querySelector('a[href], button, input, select, textarea, [role]')) continue;
    }
    // The text of a label is the name of its field.
    if (node.localName === 'label' && node.control) {
      for (const field of [...node.querySelectorAll('input, select, textarea, button')].reverse()) stack.push(field);
      continue;
    }
    if (node.localName === 'iframe' || node.localName === 'frame') { flush(); put({ role: 'frame', name: nameOf(node, 'frame') }); continue; }
    if (isBlock) { flush(); stack.push(after); }
    const children = node.shadowRoot ? node.shadowRoot.childNodes
      : node.localName === 'slot' && node.assignedNodes().length > 0 ? node.assignedNodes() : node.childNodes;
    const list = children.length > given.maxNodes ? [...children].slice(0, given.maxNodes) : [...children];
    view.more += children.length - list.length;
    for (let at = list.length - 1; at >= 0; at -= 1) stack.push(list[at]);
  }
  flush();
  return given.find ? null : view;
}
