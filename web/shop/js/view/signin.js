// Signing in: the shop's business, except in the demo.

import { h, setText } from '../dom.js';

// signInBox says what signing in is for, where it does not say how.
export function signInBox(app, why) {
  if (app.page.demo) return demoForm(app);
  if (!app.page.loginURL) return h('p', {}, app.say('sign_in_shop'));
  return h('div', { class: 'warning' },
    app.page.failed ? h('p', {}, app.say('sign_in_failed')) : h('p', { id: 'sign-in-why' }, app.say(why)),
    h('button', { class: 'button', id: 'login', type: 'button', onclick: () => app.signIn() }, app.say('sign_in')));
}

function demoForm(app) {
  const trouble = h('p', { class: 'trouble', role: 'alert' });
  const name = h('input', {
    id: 'demo-name', name: 'user', required: true, maxlength: 32, autocomplete: 'off', autocapitalize: 'off',
    spellcheck: 'false', value: `shopper-${1000 + Math.floor(Math.random() * 9000)}`,
  });
  const submit = h('button', { class: 'button', type: 'submit' }, app.say('sign_in'));
  const onsubmit = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      const { token } = await app.api.demoLogin(name.value.trim());
      app.session.signIn(token);
    } catch {
      setText(trouble, app.say('demo_failed'));
      submit.disabled = false;
    }
  };
  return h('form', { class: 'demo', onsubmit },
    h('strong', {}, app.say('demo_title')),
    h('div', { class: 'row' }, h('label', { class: 'unseen', for: 'demo-name' }, app.say('demo_name')), name, submit),
    trouble);
}
