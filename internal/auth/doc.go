// Package auth says who somebody is and what they may do: buyers' tokens and login
// codes, purchase tokens, links to orders, and the keys that sign them.
package auth
