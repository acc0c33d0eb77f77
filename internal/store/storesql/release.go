package storesql

import (
	"context"
	"maps"
	"slices"

	"seckill/internal/queue"
	"seckill/internal/store"
)

const (
	sqlReleasesDue = `SELECT order_no, user_id, product_id, limit_group, shard, release_epoch, release_time FROM tb_seckill_order
		WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND `
	sqlReleasesOrder = ` ORDER BY release_time, order_no LIMIT ?`

	sqlWitness = `SELECT stream, seq, tag FROM tb_witness ORDER BY stream`
)

// sqlSettleReleases uses alternatives instead of (order_no, release_time) IN (…), like
// knownKeys. It adds 0 so that the database does not search by time, which would match all
// orders that expired together.
var sqlSettleReleases = list{
	head: `UPDATE tb_seckill_order SET release_epoch = NULL, release_time = NULL WHERE release_epoch = ? AND (`,
	tail: `)`, columns: 2, row: `order_no = ? AND release_time + 0 = ?`, join: ` OR `,
}

func (s *Store) ReleasesDue(ctx context.Context, limit int, except ...store.Part) ([]store.Release, error) {
	where := exceptParts(except)
	return listReadable(ctx, s, "list releases", sqlReleasesDue+where.text()+sqlReleasesOrder, where.with(limit), scanRelease)
}

func scanRelease(row scanner, d *store.Release) error {
	return row.Scan(orderNo{&d.OrderNo}, &d.Buyer, &d.ProductID, &d.Group, &d.Shard, &d.Epoch, millisTime{&d.Since})
}

func (s *Store) SettleReleases(ctx context.Context, done []store.Release) error {
	if len(done) == 0 {
		return nil
	}
	byEpoch := make(map[uint64][]any)
	for _, d := range done {
		byEpoch[d.Epoch] = append(byEpoch[d.Epoch], d.OrderNo.String(), millis(d.Since))
	}
	return s.change(ctx, "release", func(ctx context.Context, tx *session) error {
		for epoch, args := range byEpoch {
			if _, err := tx.execRows(ctx, sqlSettleReleases, []any{epoch}, args); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) Witness(ctx context.Context) ([]queue.ID, error) {
	return listed(ctx, s, "read witness", sqlWitness, nil, func(row scanner, id *queue.ID) error {
		var tag int64
		err := row.Scan(&id.Stream, &id.Seq, &tag)
		id.Tag = uint64(tag)
		return err
	})
}

// raiseWitness stores the highest id of each stream. A tag is 64 random bits, stored as the
// signed number with the same bits.
func raiseWitness(ctx context.Context, tx *session, ids []queue.ID) error {
	highest := make(map[string]queue.ID, 1)
	for _, id := range ids {
		if known, ok := highest[id.Stream]; !ok || id.Seq > known.Seq {
			highest[id.Stream] = id
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(highest)) { // sorted, because two such transactions may lock the same rows
		id := highest[stream]
		if _, err := tx.exec(ctx, tx.dialect.raiseWitness, id.Stream, id.Seq, int64(id.Tag)); err != nil {
			return err
		}
	}
	return nil
}
