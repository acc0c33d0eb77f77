package storesql

import "fmt"

// dialect holds the statements that differ between databases.
type dialect struct {
	// chunkRows is the most rows in one statement.
	chunkRows int
	// prepared means that statements are prepared, so there should be few different ones.
	prepared bool
	// forUpdate goes to the end of a query by primary key, and locks the row until the
	// transaction ends. It is empty if the database runs one write transaction at a time.
	forUpdate string
	// batchedEvents means that events get their numbers after the commit (batch.go).
	batchedEvents bool
	// storyEvents lists the events of an order, oldest first.
	storyEvents string
	// useIndex names the index of a search. Without it, databases assume that order numbers are
	// spread evenly over products and states, and scan all numbers down to the end of an old
	// sale.
	useIndex string
	// countUnits adds units to the sums of orders. Its rows are (product, status, slot, units),
	// and unitSlots is the number of slots.
	countUnits list
	unitSlots  int
	// knownKeys finds orders of one limit group by rows of (buyer, key). It looks up just these
	// keys, because a buyer may have used any number of others.
	knownKeys list
	// addUnits adds units to buyer records, and creates missing ones. Its rows are (limit
	// group, buyer, order number, units).
	addUnits list
	// raiseWitness sets stream, seq and tag, if seq is higher than the stored one.
	raiseWitness string
	// settle inserts or updates rows of deliveries.
	settle list
}

// by returns the WHERE of a search with its index; with "" the database chooses.
func (d *dialect) by(index string) string {
	if index == "" {
		return " WHERE "
	}
	return fmt.Sprintf(d.useIndex, index)
}

// countUnitsHead is the beginning of countUnits.
const countUnitsHead = `INSERT INTO tb_order_units (product_id, status, slot, units) VALUES `

// settleHead is the beginning of settle.
const settleHead = `INSERT INTO tb_sink_delivery (sink, event_id, delivery_key, event, message_id, event_time, state, attempts,
	last_status, latency_ms, last_error, first_time, last_time, next_time, body) VALUES `

var mysqlDialect = dialect{
	chunkRows:     preparedRows,
	forUpdate:     ` FOR UPDATE`,
	batchedEvents: true,
	storyEvents:   `SELECT create_time, event, reason FROM tb_event WHERE order_no = ? ORDER BY batch_id, place`,
	useIndex:      ` FORCE INDEX (%s) WHERE `,
	countUnits: list{
		head: countUnitsHead, tail: ` ON DUPLICATE KEY UPDATE units = units + VALUES(units)`, columns: 4,
	},
	unitSlots: 16, // about the number of transactions that write at a time by default
	// Alternatives instead of (user_id, idem_key) IN (…), because MariaDB uses no index for
	// that form.
	knownKeys: list{
		head: `SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = ? AND (`,
		tail: `)`, columns: 2, row: `user_id = ? AND idem_key = ?`, join: ` OR `,
	},
	addUnits: list{
		head:    `INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES `,
		tail:    ` ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))`,
		columns: 4,
	},
	raiseWitness: `INSERT INTO tb_witness (stream, seq, tag) VALUES (?, ?, ?)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))`,
	settle: list{
		head: settleHead,
		tail: ` ON DUPLICATE KEY UPDATE state = VALUES(state), attempts = VALUES(attempts), last_status = VALUES(last_status),
			latency_ms = VALUES(latency_ms), last_error = VALUES(last_error), first_time = VALUES(first_time),
			last_time = VALUES(last_time), next_time = VALUES(next_time), body = VALUES(body)`,
		columns: 15,
	},
}

var sqliteDialect = dialect{
	// 128 rows of 20 columns are far below SQLite's limit of 32,766 variables. With so many
	// rows the cost of the call no longer matters.
	chunkRows:   128,
	prepared:    true,
	storyEvents: `SELECT create_time, event, reason FROM tb_event WHERE order_no = ? ORDER BY id`,
	useIndex:    ` INDEXED BY %s WHERE `,
	countUnits: list{
		head: countUnitsHead, tail: ` ON CONFLICT (product_id, status, slot) DO UPDATE SET units = units + excluded.units`, columns: 4,
	},
	unitSlots: 1,
	knownKeys: list{
		head: `SELECT user_id, idem_key, order_no FROM tb_seckill_order
			WHERE limit_group = ? AND (user_id, idem_key) IN (VALUES `,
		tail: `)`, columns: 2,
	},
	addUnits: list{
		head: `INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES `,
		tail: ` ON CONFLICT (product_id, user_id) DO UPDATE SET quantity = quantity + excluded.quantity,
			order_no = MAX(order_no, excluded.order_no)`,
		columns: 4,
	},
	raiseWitness: `INSERT INTO tb_witness (stream, seq, tag) VALUES (?, ?, ?)
		ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, tag = excluded.tag WHERE excluded.seq > tb_witness.seq`,
	settle: list{
		head: settleHead,
		tail: ` ON CONFLICT (sink, event_id) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
			last_status = excluded.last_status, latency_ms = excluded.latency_ms, last_error = excluded.last_error,
			first_time = excluded.first_time, last_time = excluded.last_time, next_time = excluded.next_time, body = excluded.body`,
		columns: 15,
	},
}
