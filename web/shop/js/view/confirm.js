// A question before a step that cannot be taken back, or that was not asked for.

import { h } from '../dom.js';

// confirmBox asks with the words name_ask, name_warn, name_yes and name_no.
// Closing it in any other way, or leaving the view, means no.
export function confirmBox(app, name, signal, values) {
  return new Promise((resolve) => {
    const close = (answer) => () => box.close(answer);
    const box = h('dialog', { 'aria-labelledby': 'ask' },
      h('h2', { id: 'ask' }, app.say(`${name}_ask`, values)),
      h('p', {}, app.say(`${name}_warn`, values)),
      h('div', { class: 'actions' },
        h('button', { class: 'button plain', type: 'button', id: 'answer-no', autofocus: true, onclick: close('no') }, app.say(`${name}_no`)),
        h('button', { class: 'link', type: 'button', id: 'answer-yes', onclick: close('yes') }, app.say(`${name}_yes`))));
    box.addEventListener('close', () => {
      box.remove();
      resolve(box.returnValue === 'yes');
    });
    signal.addEventListener('abort', close('no'), { once: true });
    document.body.append(box);
    box.showModal();
  });
}
