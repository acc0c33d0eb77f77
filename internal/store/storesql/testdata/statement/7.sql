-- What a program of version 7 says to MariaDB in one life of its products, in order.
-- connection 1
SET NAMES utf8mb4 COLLATE utf8mb4_bin
-- connection 1
SET innodb_lock_wait_timeout = 5, wait_timeout = 20, sql_mode = 'STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1
-- connection 1
SELECT VERSION()
-- connection 1
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
-- connection 1
SET SESSION max_statement_time = 30.000
-- connection 1
START TRANSACTION
-- connection 1
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)
-- connection 1
DELETE FROM tb_lease WHERE name = 'ping' AND holder = ''
-- connection 1
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_seckill_product WHERE id = 7
-- connection 1
INSERT INTO tb_seckill_product (id, ref, product_name, price_cents, currency, stock, offered,
		per_user_limit, limit_group, starts_at, ends_at, shards, strategy, fallback_share, state, epoch, version, log_seq,
		rebuilding, create_time, image_url, unlisted, shard_key) VALUES (7,'','Kettle',999,'CNY',0,0,1,7,1794851434824,1794855034824,1,'async',0,0,0,1,0,0,1794851434825,'',0,0)
-- connection 1
UPDATE tb_seckill_product SET stock = 100, offered = 100, share_left = 0, log_seq = 1 WHERE id = 7
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,1,NULL,100,0,100,3,1794851434825)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434825,'operator','product.create',7,'','test','100 units of \"Kettle\" at 9.99 CNY')
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET epoch = 1, version = version + 1, rebuilding = 1
		WHERE id = 7 AND version = 1
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434827,'operator','product.epoch',7,'','test','epoch 0 -> 1')
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 AND epoch < 1 ORDER BY epoch DESC, id LIMIT 10000
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 7 AND status IN (0, 1) AND origin = 0
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 7 AND status IN (2, 3, 4) AND idem_key IS NOT NULL
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET ref = '', product_name = 'Kettle, red', price_cents = 1099, currency = 'CNY',
		per_user_limit = 1, starts_at = 1794851434824, ends_at = 1794855034824, image_url = '', unlisted = 0 WHERE id = 7
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434829,'operator','product.patch',7,'','test','name Kettle -> Kettle, red, price_cents 999 -> 1099')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET state = 1, version = version + 1 WHERE id = 7
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434830,'operator','product.pause',7,'','test','')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET state = 0, version = version + 1 WHERE id = 7
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434831,'operator','product.resume',7,'','test','')
-- connection 1
COMMIT
-- connection 2
SET NAMES utf8mb4 COLLATE utf8mb4_bin
-- connection 2
SET time_zone = '+00:00', autocommit = 1, innodb_lock_wait_timeout = 5, wait_timeout = 20, sql_mode = 'STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
-- connection 2
SELECT VERSION()
-- connection 2
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
-- connection 2
SET SESSION max_statement_time = 30.000
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_seckill_product SET started_time = 1794851434833 WHERE id = 7 AND started_time IS NULL
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (1,0,1794851434833,'sale.started',7,NULL,'')
-- connection 1
COMMIT
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWAJ000001R000000001',_binary'buyer-9e3779b97f4a7c15',7,7,'Kettle, red',1099,'CNY',1,'','key-1',0,'',1794851434834,1794853234835,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAJ000001R000000002',_binary'buyer-3c6ef372fe94f82a',7,7,'Kettle, red',1099,'CNY',1,'','key-2',0,'',1794851434834,1794853234835,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAJ000001R000000003',_binary'buyer-daa66d2c7ddf743f',7,7,'Kettle, red',1099,'CNY',1,'','key-3',0,'',1794851434834,1794853234835,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAJ000001R000000004',_binary'buyer-78dde6e5fd29f054',7,7,'Kettle, red',1099,'CNY',1,'','key-4',0,'',1794851434834,1794853234835,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-9e3779b97f4a7c15','SK01M7JQPWAJ000001R000000001',1),(7,_binary'buyer-3c6ef372fe94f82a','SK01M7JQPWAJ000001R000000002',1),(7,_binary'buyer-daa66d2c7ddf743f','SK01M7JQPWAJ000001R000000003',1),(7,_binary'buyer-78dde6e5fd29f054','SK01M7JQPWAJ000001R000000004',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -4, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 4, version = version + 1
		WHERE id = 7 AND version = 4 AND stock + -4 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,2,'SK01M7JQPWAJ000001R000000001',1,100,99,1,1794851434836),(7,3,'SK01M7JQPWAJ000001R000000002',1,99,98,1,1794851434836),(7,4,'SK01M7JQPWAJ000001R000000003',1,98,97,1,1794851434836),(7,5,'SK01M7JQPWAJ000001R000000004',1,97,96,1,1794851434836)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (4)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (2,0,1794851434836,'order.confirmed',7,'SK01M7JQPWAJ000001R000000001',''),(2,1,1794851434836,'order.confirmed',7,'SK01M7JQPWAJ000001R000000002',''),(2,2,1794851434836,'order.confirmed',7,'SK01M7JQPWAJ000001R000000003',''),(2,3,1794851434836,'order.confirmed',7,'SK01M7JQPWAJ000001R000000004','')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 1, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWAQ000001R000000005',_binary'buyer-1715609f7c746c69',7,7,'Kettle, red',1099,'CNY',1,'','key-5',0,'',1794851434839,1794853234839,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAQ000001R000000006',_binary'buyer-b54cda58fbbee87e',7,7,'Kettle, red',1099,'CNY',1,'','key-6',0,'',1794851434839,1794853234839,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAJ000001R000000001',_binary'buyer-9e3779b97f4a7c15',7,7,'Kettle, red',1099,'CNY',1,'','key-1',0,'',1794851434834,1794853234839,NULL,1,0,0,NULL,NULL)
-- connection 1
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWAQ000001R000000005','SK01M7JQPWAQ000001R000000006','SK01M7JQPWAJ000001R000000001')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-1715609f7c746c69',_binary'buyer-b54cda58fbbee87e')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-1715609f7c746c69' AND idem_key = 'key-5' OR user_id = _binary'buyer-b54cda58fbbee87e' AND idem_key = 'key-6')
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWAQ000001R000000005',_binary'buyer-1715609f7c746c69',7,7,'Kettle, red',1099,'CNY',1,'','key-5',0,'',1794851434839,1794853234841,NULL,1,0,0,NULL,NULL),('SK01M7JQPWAQ000001R000000006',_binary'buyer-b54cda58fbbee87e',7,7,'Kettle, red',1099,'CNY',1,'','key-6',0,'',1794851434839,1794853234841,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-1715609f7c746c69','SK01M7JQPWAQ000001R000000005',1),(7,_binary'buyer-b54cda58fbbee87e','SK01M7JQPWAQ000001R000000006',1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -2, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 2, version = version + 1
		WHERE id = 7 AND version = 5 AND stock + -2 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,6,'SK01M7JQPWAQ000001R000000005',1,96,95,1,1794851434841),(7,7,'SK01M7JQPWAQ000001R000000006',1,95,94,1,1794851434841)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (2)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (3,0,1794851434841,'order.confirmed',7,'SK01M7JQPWAQ000001R000000005',''),(3,1,1794851434841,'order.confirmed',7,'SK01M7JQPWAQ000001R000000006','')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 2, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWAV000001R000000007',_binary'buyer-538454127b096493',7,7,'Kettle, red',1099,'CNY',1,'','key-7',0,'',1794851434843,1794851434844,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-538454127b096493','SK01M7JQPWAV000001R000000007',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 6 AND stock + -1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,8,'SK01M7JQPWAV000001R000000007',1,94,93,1,1794851434844)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (4,0,1794851434844,'order.confirmed',7,'SK01M7JQPWAV000001R000000007','')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 3, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 2
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWAJ000001R000000001'
-- connection 2
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWAJ000001R000000001','SK01M7JQPWAJ000001R000000002')
-- connection 2
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE user_id = _binary'buyer-9e3779b97f4a7c15' ORDER BY order_no DESC LIMIT 5
-- connection 2
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 7 AND status = 0 ORDER BY order_no DESC LIMIT 5
-- connection 2
SELECT product_id, MAX(pay_before) FROM tb_seckill_order WHERE status = 0 AND product_id IN (7) GROUP BY product_id
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWAJ000001R000000001'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_order SET status = 2, reason = 'changed my mind', cancel_time = 1794851434847, epoch = 1, release_epoch = 1, release_time = 1794851434847
			WHERE status = 0 AND order_no IN ('SK01M7JQPWAJ000001R000000001')
-- connection 1
UPDATE tb_seckill_product SET stock = stock + 1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 7 AND stock + 1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,9,'SK01M7JQPWAJ000001R000000001',1,93,94,2,1794851434847)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-9e3779b97f4a7c15','SK01M7JQPWAJ000001R000000001',-1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
DELETE FROM tb_user_seckill WHERE quantity <= 0 AND product_id = 7 AND user_id IN (_binary'buyer-9e3779b97f4a7c15')
-- connection 1
UPDATE tb_user_seckill SET order_no = COALESCE((SELECT MAX(o.order_no) FROM tb_seckill_order o
			WHERE o.user_id = tb_user_seckill.user_id AND o.limit_group = tb_user_seckill.product_id AND o.status IN (0, 1)), order_no)
			WHERE product_id = 7 AND user_id IN (_binary'buyer-9e3779b97f4a7c15')
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (5,0,1794851434847,'order.cancelled',7,'SK01M7JQPWAJ000001R000000001','changed my mind')
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434847,'operator','order.cancel',7,'SK01M7JQPWAJ000001R000000001','test','changed my mind')
-- connection 1
COMMIT
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT create_time, dead_time, closed_time, attempts, reason FROM tb_dead_letter WHERE order_no = 'SK01M7JQPWAJ000001R000000001'
-- connection 2
SELECT create_time, event, reason FROM tb_event WHERE order_no = 'SK01M7JQPWAJ000001R000000001' ORDER BY batch_id, place
-- connection 2
SELECT create_time, before_stock, after_stock FROM tb_stock_log WHERE order_no = 'SK01M7JQPWAJ000001R000000001' ORDER BY seq
-- connection 2
SELECT create_time, done_time, type, status, amount_cents, currency, provider, reason, attempts, last_error
		FROM tb_payment WHERE order_no = 'SK01M7JQPWAJ000001R000000001' ORDER BY create_time, type, id
-- connection 2
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order
		WHERE status = 0 AND warned = 0 AND pay_before > 1794851434850 AND pay_before < 1794855034850 ORDER BY pay_before LIMIT 10
-- connection 1
UPDATE tb_seckill_order SET warned = 1 WHERE status = 0 AND warned = 0 AND order_no IN ('SK01M7JQPWAJ000001R000000002','SK01M7JQPWAJ000001R000000003','SK01M7JQPWAJ000001R000000004','SK01M7JQPWAQ000001R000000005','SK01M7JQPWAQ000001R000000006')
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (5)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (6,0,1794851434850,'order.expiring',7,'SK01M7JQPWAJ000001R000000002',''),(6,1,1794851434850,'order.expiring',7,'SK01M7JQPWAJ000001R000000003',''),(6,2,1794851434850,'order.expiring',7,'SK01M7JQPWAJ000001R000000004',''),(6,3,1794851434850,'order.expiring',7,'SK01M7JQPWAQ000001R000000005',''),(6,4,1794851434850,'order.expiring',7,'SK01M7JQPWAQ000001R000000006','')
-- connection 1
COMMIT
-- connection 2
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order
		WHERE status = 0 AND warned IN (0, 1) AND pay_before <= 1794851434852 AND 1 = 1 LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWAV000001R000000007')
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_order SET status = 2, reason = 'expired', cancel_time = 1794851434852, epoch = 1, release_epoch = 1, release_time = 1794851434852
			WHERE status = 0 AND order_no IN ('SK01M7JQPWAV000001R000000007')
-- connection 1
UPDATE tb_seckill_product SET stock = stock + 1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 8 AND stock + 1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,10,'SK01M7JQPWAV000001R000000007',1,94,95,2,1794851434852)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-538454127b096493','SK01M7JQPWAV000001R000000007',-1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
DELETE FROM tb_user_seckill WHERE quantity <= 0 AND product_id = 7 AND user_id IN (_binary'buyer-538454127b096493')
-- connection 1
UPDATE tb_user_seckill SET order_no = COALESCE((SELECT MAX(o.order_no) FROM tb_seckill_order o
			WHERE o.user_id = tb_user_seckill.user_id AND o.limit_group = tb_user_seckill.product_id AND o.status IN (0, 1)), order_no)
			WHERE product_id = 7 AND user_id IN (_binary'buyer-538454127b096493')
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (7,0,1794851434852,'order.cancelled',7,'SK01M7JQPWAV000001R000000007','expired')
-- connection 1
COMMIT
-- connection 2
SELECT order_no, user_id, product_id, limit_group, shard, release_epoch, release_time FROM tb_seckill_order
		WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND 1 = 1 ORDER BY release_time, order_no LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_seckill_order SET release_epoch = NULL, release_time = NULL WHERE release_epoch = 1 AND (order_no = 'SK01M7JQPWAJ000001R000000001' AND release_time + 0 = 1794851434847 OR order_no = 'SK01M7JQPWAV000001R000000007' AND release_time + 0 = 1794851434852)
-- connection 1
COMMIT
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
SELECT id FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWB8000001R000000008')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-f1bbcdcbfa53e0a8')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-f1bbcdcbfa53e0a8' AND idem_key = 'key-8')
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWB8000001R000000008',_binary'buyer-f1bbcdcbfa53e0a8',7,7,'Kettle, red',1099,'CNY',1,'','key-8',3,'units are gone',1794851434856,NULL,1794851434856,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (8,0,1794851434856,'order.failed',7,'SK01M7JQPWB8000001R000000008','units are gone')
-- connection 1
UPDATE tb_seckill_order SET release_epoch = 1, epoch = 1,
	release_time = CASE WHEN release_time >= 1794851434856 THEN release_time + 1 ELSE 1794851434856 END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND (SELECT COUNT(*) FROM tb_dead_letter l
		WHERE l.order_no = tb_seckill_order.order_no AND l.closed_time + 0 IS NULL) > 0 AND order_no IN ('SK01M7JQPWB8000001R000000008')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWBA000001R00000000D',_binary'buyer-08d12e6b76c84d11',7,7,'Kettle, red',1099,'CNY',1,'','key-13',0,'',1794851434858,1794853234858,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-08d12e6b76c84d11','SK01M7JQPWBA000001R00000000D',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 9 AND stock + -1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,11,'SK01M7JQPWBA000001R00000000D',1,95,94,1,1794851434859)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (9,0,1794851434859,'order.confirmed',7,'SK01M7JQPWBA000001R00000000D','')
-- connection 1
UPDATE tb_seckill_order SET release_epoch = 1, epoch = 1,
	release_time = CASE WHEN release_time >= 1794851434859 THEN release_time + 1 ELSE 1794851434859 END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND order_no IN ('SK01M7JQPWB8000001R000000009','SK01M7JQPWB8000001R00000000A','SK01M7JQPWB8000001R00000000B','SK01M7JQPWB8000001R00000000C')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT 'SK01M7JQPWB8000001R000000009',_binary'buyer-8ff34785799e5cbd',7,7,0,1,1794851434856,1,'key-9','','Kettle, red',1099,'CNY',1,1,'bad message',1794851434859,1794851434859 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWB8000001R000000009')
		ON DUPLICATE KEY UPDATE shard = IF(closed_time IS NULL AND epoch >= VALUES(epoch), shard, VALUES(shard)),
		claim_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), claim_time, VALUES(claim_time)),
		attempts = IF(closed_time IS NULL AND epoch >= VALUES(epoch), attempts, 1),
		reason = IF(closed_time IS NULL AND epoch >= VALUES(epoch), reason, VALUES(reason)),
		next_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), next_time, VALUES(next_time)),
		dead_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), dead_time, NULL),
		epoch = IF(closed_time IS NULL, GREATEST(epoch, VALUES(epoch)), VALUES(epoch)), closed_time = NULL
-- connection 1
INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT 'SK01M7JQPWB8000001R00000000A',_binary'buyer-2e2ac13ef8e8d8d2',7,7,0,1,1794851434856,1,'key-10','','Kettle, red',1099,'CNY',1,1,'bad message',1794851434859,1794851434859 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWB8000001R00000000A')
		ON DUPLICATE KEY UPDATE shard = IF(closed_time IS NULL AND epoch >= VALUES(epoch), shard, VALUES(shard)),
		claim_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), claim_time, VALUES(claim_time)),
		attempts = IF(closed_time IS NULL AND epoch >= VALUES(epoch), attempts, 1),
		reason = IF(closed_time IS NULL AND epoch >= VALUES(epoch), reason, VALUES(reason)),
		next_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), next_time, VALUES(next_time)),
		dead_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), dead_time, NULL),
		epoch = IF(closed_time IS NULL, GREATEST(epoch, VALUES(epoch)), VALUES(epoch)), closed_time = NULL
-- connection 1
INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT 'SK01M7JQPWB8000001R00000000B',_binary'buyer-cc623af8783354e7',7,7,0,1,1794851434856,1,'key-11','','Kettle, red',1099,'CNY',1,1,'bad message',1794851434859,1794851434859 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWB8000001R00000000B')
		ON DUPLICATE KEY UPDATE shard = IF(closed_time IS NULL AND epoch >= VALUES(epoch), shard, VALUES(shard)),
		claim_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), claim_time, VALUES(claim_time)),
		attempts = IF(closed_time IS NULL AND epoch >= VALUES(epoch), attempts, 1),
		reason = IF(closed_time IS NULL AND epoch >= VALUES(epoch), reason, VALUES(reason)),
		next_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), next_time, VALUES(next_time)),
		dead_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), dead_time, NULL),
		epoch = IF(closed_time IS NULL, GREATEST(epoch, VALUES(epoch)), VALUES(epoch)), closed_time = NULL
-- connection 1
INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT 'SK01M7JQPWB8000001R00000000C',_binary'buyer-6a99b4b1f77dd0fc',7,7,0,1,1794851434856,1,'key-12','','Kettle, red',1099,'CNY',1,1,'bad message',1794851434859,1794851434859 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWB8000001R00000000C')
		ON DUPLICATE KEY UPDATE shard = IF(closed_time IS NULL AND epoch >= VALUES(epoch), shard, VALUES(shard)),
		claim_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), claim_time, VALUES(claim_time)),
		attempts = IF(closed_time IS NULL AND epoch >= VALUES(epoch), attempts, 1),
		reason = IF(closed_time IS NULL AND epoch >= VALUES(epoch), reason, VALUES(reason)),
		next_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), next_time, VALUES(next_time)),
		dead_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), dead_time, NULL),
		epoch = IF(closed_time IS NULL, GREATEST(epoch, VALUES(epoch)), VALUES(epoch)), closed_time = NULL
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 4, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_order SET release_epoch = 1, epoch = 1,
	release_time = CASE WHEN release_time >= 1794851434862 THEN release_time + 1 ELSE 1794851434862 END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND order_no IN ('SK01M7JQPWB8000001R000000009')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT 'SK01M7JQPWB8000001R000000009',_binary'buyer-8ff34785799e5cbd',7,7,0,1,1794851434856,1,'key-9','','Kettle, red',1099,'CNY',1,1,'bad message',1794851434862,1794851434862 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWB8000001R000000009')
		ON DUPLICATE KEY UPDATE shard = IF(closed_time IS NULL AND epoch >= VALUES(epoch), shard, VALUES(shard)),
		claim_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), claim_time, VALUES(claim_time)),
		attempts = IF(closed_time IS NULL AND epoch >= VALUES(epoch), attempts, 1),
		reason = IF(closed_time IS NULL AND epoch >= VALUES(epoch), reason, VALUES(reason)),
		next_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), next_time, VALUES(next_time)),
		dead_time = IF(closed_time IS NULL AND epoch >= VALUES(epoch), dead_time, NULL),
		epoch = IF(closed_time IS NULL, GREATEST(epoch, VALUES(epoch)), VALUES(epoch)), closed_time = NULL
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 5, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 2
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter
		WHERE closed_time IS NULL AND dead_time IS NULL AND next_time <= 1794851434863 AND 1 = 1 ORDER BY next_time, id LIMIT 10
-- connection 2
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND order_no = 'SK01M7JQPWB8000001R000000009'
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_dead_letter SET attempts = attempts + 1, reason = 'still bad', next_time = 1794851494863, dead_time = NULL
		WHERE id = 1 AND closed_time IS NULL AND dead_time IS NULL
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND id = 1
-- connection 1
UPDATE tb_dead_letter SET attempts = 0, next_time = 1794851434864, dead_time = NULL WHERE id = 1 AND closed_time IS NULL
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434864,'operator','letter.retry',7,'SK01M7JQPWB8000001R000000009','test','still bad')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWB8000001R000000009',_binary'buyer-8ff34785799e5cbd',7,7,'Kettle, red',1099,'CNY',1,'','key-9',0,'',1794851434856,1794853234865,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-8ff34785799e5cbd','SK01M7JQPWB8000001R000000009',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 10 AND stock + -1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,12,'SK01M7JQPWB8000001R000000009',1,94,93,1,1794851434865)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (10,0,1794851434865,'order.confirmed',7,'SK01M7JQPWB8000001R000000009','')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
UPDATE tb_dead_letter SET closed_time = 1794851434865 WHERE closed_time + 0 IS NULL AND order_no IN ('SK01M7JQPWB8000001R000000009')
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 6, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_dead_letter SET attempts = attempts + 1, reason = 'for good', next_time = 1794851434866, dead_time = 1794851434866
		WHERE id = 2 AND closed_time IS NULL AND dead_time IS NULL
-- connection 1
COMMIT
-- connection 2
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND id > 0 AND product_id = 7 AND dead_time IS NOT NULL ORDER BY id LIMIT 10
-- connection 2
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter
		WHERE closed_time IS NULL AND dead_time <= 1794851494867 AND 1 = 1 ORDER BY dead_time, id LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND id = 2
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWB8000001R00000000A')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-2e2ac13ef8e8d8d2')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-2e2ac13ef8e8d8d2' AND idem_key = 'key-10')
-- connection 1
UPDATE tb_dead_letter SET closed_time = 1794851434868 WHERE id = 2 AND closed_time IS NULL
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWB8000001R00000000A',_binary'buyer-2e2ac13ef8e8d8d2',7,7,'Kettle, red',1099,'CNY',1,'','key-10',3,'discarded',1794851434856,NULL,1794851434868,1,0,0,1,1794851434868)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (11,0,1794851434868,'order.failed',7,'SK01M7JQPWB8000001R00000000A','discarded')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND id = 3
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWB8000001R00000000B')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-cc623af8783354e7')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-cc623af8783354e7' AND idem_key = 'key-11')
-- connection 1
UPDATE tb_dead_letter SET closed_time = 1794851434869 WHERE id = 3 AND closed_time IS NULL
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWB8000001R00000000B',_binary'buyer-cc623af8783354e7',7,7,'Kettle, red',1099,'CNY',1,'','key-11',3,'discarded',1794851434856,NULL,1794851434869,1,0,0,1,1794851434869)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (12,0,1794851434869,'order.failed',7,'SK01M7JQPWB8000001R00000000B','discarded')
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434869,'operator','letter.discard',7,'SK01M7JQPWB8000001R00000000B','test','bad message')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_dead_letter SET closed_time = 1794851434872 WHERE id = 4 AND closed_time IS NULL AND epoch = 1
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_seckill_product WHERE id = 8
-- connection 1
INSERT INTO tb_seckill_product (id, ref, product_name, price_cents, currency, stock, offered,
		per_user_limit, limit_group, starts_at, ends_at, shards, strategy, fallback_share, state, epoch, version, log_seq,
		rebuilding, create_time, image_url, unlisted, shard_key) VALUES (8,'','Kettle',999,'CNY',0,0,1,8,1794851434872,1794855034872,1,'direct',0,0,0,1,0,0,1794851434872,'',0,0)
-- connection 1
UPDATE tb_seckill_product SET stock = 10, offered = 10, share_left = 0, log_seq = 1 WHERE id = 8
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (8,1,NULL,10,0,10,3,1794851434872)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434872,'operator','product.create',8,'','test','10 units of \"Kettle\" at 9.99 CNY')
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET epoch = 1, version = version + 1, rebuilding = 1
		WHERE id = 8 AND version = 1
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434874,'operator','product.epoch',8,'','test','epoch 0 -> 1')
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 8 AND epoch < 1 ORDER BY epoch DESC, id LIMIT 10000
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 8 AND status IN (0, 1) AND origin = 0
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 8 AND status IN (2, 3, 4) AND idem_key IS NOT NULL
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWBV000002000000000E','SK01M7JQPWBV000002000000000F','SK01M7JQPWBV000002000000000G')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 8 AND user_id IN (_binary'buyer-a708a824f612c926',_binary'buyer-454021de755d453b',_binary'buyer-e3779b97f4a7c150')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 8 AND (user_id = _binary'buyer-a708a824f612c926' AND idem_key = 'key-14' OR user_id = _binary'buyer-454021de755d453b' AND idem_key = 'key-15' OR user_id = _binary'buyer-e3779b97f4a7c150' AND idem_key = 'key-16')
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWBV000002000000000E',_binary'buyer-a708a824f612c926',8,8,'Kettle',999,'CNY',1,'','key-14',0,'',1794851434876,1794855034876,NULL,0,0,2,NULL,NULL),('SK01M7JQPWBV000002000000000F',_binary'buyer-454021de755d453b',8,8,'Kettle',999,'CNY',1,'','key-15',0,'',1794851434876,1794855034876,NULL,0,0,2,NULL,NULL),('SK01M7JQPWBV000002000000000G',_binary'buyer-e3779b97f4a7c150',8,8,'Kettle',999,'CNY',1,'','key-16',0,'',1794851434876,1794855034876,NULL,0,0,2,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (8,_binary'buyer-a708a824f612c926','SK01M7JQPWBV000002000000000E',1),(8,_binary'buyer-454021de755d453b','SK01M7JQPWBV000002000000000F',1),(8,_binary'buyer-e3779b97f4a7c150','SK01M7JQPWBV000002000000000G',1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -3, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 3, version = version + 1
		WHERE id = 8 AND version = 2 AND stock + -3 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (8,2,'SK01M7JQPWBV000002000000000E',1,10,9,1,1794851434876),(8,3,'SK01M7JQPWBV000002000000000F',1,9,8,1,1794851434876),(8,4,'SK01M7JQPWBV000002000000000G',1,8,7,1,1794851434876)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (3)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (13,0,1794851434876,'order.confirmed',8,'SK01M7JQPWBV000002000000000E',''),(13,1,1794851434876,'order.confirmed',8,'SK01M7JQPWBV000002000000000F',''),(13,2,1794851434876,'order.confirmed',8,'SK01M7JQPWBV000002000000000G','')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWBV000002000000000E','SK01M7JQPWBV000002000000000F','SK01M7JQPWBV000002000000000G')
-- connection 1
COMMIT
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 2
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWBV000002000000000E','SK01M7JQPWBV000002000000000F','SK01M7JQPWBV000002000000000G')
-- connection 2
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_seckill_product WHERE id = 9
-- connection 1
INSERT INTO tb_seckill_product (id, ref, product_name, price_cents, currency, stock, offered,
		per_user_limit, limit_group, starts_at, ends_at, shards, strategy, fallback_share, state, epoch, version, log_seq,
		rebuilding, create_time, image_url, unlisted, shard_key) VALUES (9,'','Kettle',999,'CNY',0,0,1,9,1794851434879,1794855034879,1,'async',0.2,0,0,1,0,0,1794851434879,'',0,0)
-- connection 1
UPDATE tb_seckill_product SET stock = 20, offered = 20, share_left = 4, log_seq = 1 WHERE id = 9
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (9,1,NULL,20,0,20,3,1794851434879)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434879,'operator','product.create',9,'','test','20 units of \"Kettle\" at 9.99 CNY')
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET epoch = 1, version = version + 1, rebuilding = 1
		WHERE id = 9 AND version = 1
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434881,'operator','product.epoch',9,'','test','epoch 0 -> 1')
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 9 AND epoch < 1 ORDER BY epoch DESC, id LIMIT 10000
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 9 AND status IN (0, 1) AND origin = 0
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 9 AND status IN (2, 3, 4) AND idem_key IS NOT NULL
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWC2000002800000000H','SK01M7JQPWC2000002800000000J','SK01M7JQPWC2000002800000000K')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 9 AND user_id IN (_binary'buyer-81af155173f23d65',_binary'buyer-1fe68f0af33cb97a',_binary'buyer-be1e08c47287358f')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 9 AND (user_id = _binary'buyer-81af155173f23d65' AND idem_key = 'key-17' OR user_id = _binary'buyer-1fe68f0af33cb97a' AND idem_key = 'key-18' OR user_id = _binary'buyer-be1e08c47287358f' AND idem_key = 'key-19')
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWC2000002800000000H',_binary'buyer-81af155173f23d65',9,9,'Kettle',999,'CNY',1,'','key-17',0,'',1794851434882,1794855034882,NULL,0,0,1,NULL,NULL),('SK01M7JQPWC2000002800000000J',_binary'buyer-1fe68f0af33cb97a',9,9,'Kettle',999,'CNY',1,'','key-18',0,'',1794851434882,1794855034882,NULL,0,0,1,NULL,NULL),('SK01M7JQPWC2000002800000000K',_binary'buyer-be1e08c47287358f',9,9,'Kettle',999,'CNY',1,'','key-19',0,'',1794851434882,1794855034882,NULL,0,0,1,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (9,_binary'buyer-81af155173f23d65','SK01M7JQPWC2000002800000000H',1),(9,_binary'buyer-1fe68f0af33cb97a','SK01M7JQPWC2000002800000000J',1),(9,_binary'buyer-be1e08c47287358f','SK01M7JQPWC2000002800000000K',1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -3, offered = offered + 0, share_left = share_left + -3,
		log_seq = log_seq + 3, version = version + 1
		WHERE id = 9 AND version = 2 AND stock + -3 >= share_left + -3 AND share_left + -3 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (9,2,'SK01M7JQPWC2000002800000000H',1,20,19,1,1794851434882),(9,3,'SK01M7JQPWC2000002800000000J',1,19,18,1,1794851434882),(9,4,'SK01M7JQPWC2000002800000000K',1,18,17,1,1794851434882)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (3)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (14,0,1794851434882,'order.confirmed',9,'SK01M7JQPWC2000002800000000H',''),(14,1,1794851434882,'order.confirmed',9,'SK01M7JQPWC2000002800000000J',''),(14,2,1794851434882,'order.confirmed',9,'SK01M7JQPWC2000002800000000K','')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWC2000002800000000H','SK01M7JQPWC2000002800000000J','SK01M7JQPWC2000002800000000K')
-- connection 1
COMMIT
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9
-- connection 2
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWC2000002800000000H','SK01M7JQPWC2000002800000000J','SK01M7JQPWC2000002800000000K')
-- connection 2
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWC2000002800000000H'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
UPDATE tb_seckill_order SET status = 2, reason = '', cancel_time = 1794851434886 WHERE status = 0 AND order_no IN ('SK01M7JQPWC2000002800000000H')
-- connection 1
UPDATE tb_seckill_product SET stock = stock + 1, offered = offered + 0, share_left = share_left + 1,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 9 AND version = 3 AND stock + 1 >= share_left + 1 AND share_left + 1 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (9,5,'SK01M7JQPWC2000002800000000H',1,17,18,2,1794851434886)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (9,_binary'buyer-81af155173f23d65','SK01M7JQPWC2000002800000000H',-1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
DELETE FROM tb_user_seckill WHERE quantity <= 0 AND product_id = 9 AND user_id IN (_binary'buyer-81af155173f23d65')
-- connection 1
UPDATE tb_user_seckill SET order_no = COALESCE((SELECT MAX(o.order_no) FROM tb_seckill_order o
			WHERE o.user_id = tb_user_seckill.user_id AND o.limit_group = tb_user_seckill.product_id AND o.status IN (0, 1)), order_no)
			WHERE product_id = 9 AND user_id IN (_binary'buyer-81af155173f23d65')
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (15,0,1794851434886,'order.cancelled',9,'SK01M7JQPWC2000002800000000H','')
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434886,'operator','order.cancel',9,'SK01M7JQPWC2000002800000000H','test','')
-- connection 1
COMMIT
-- connection 2
SELECT user_id FROM tb_seckill_order WHERE product_id = 9 AND origin <> 0
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'share-9'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET share_left = 0, version = version + 1 WHERE id = 9 AND version = 4
-- connection 1
INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, from_share, actor, reason, create_time, done_time)
		VALUES ('share-9',9,2,1,'open',1,'operator','test',1794851434888,NULL)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434888,'operator','product.share',9,'','test','2 units of the share go to the ledger, change share-9')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'share-9'
-- connection 1
UPDATE tb_stock_change SET status = 'done', done_time = 1794851434889 WHERE id = 'share-9' AND status = 'open' AND epoch = 1
-- connection 1
COMMIT
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWCA000001R00000000M',_binary'buyer-5c55827df1d1b1a4',7,7,'Kettle, red',1099,'CNY',1,'','key-20',0,'',1794851434890,1794855034890,NULL,1,0,0,NULL,NULL),('SK01M7JQPWCA000001R00000000N',_binary'buyer-fa8cfc37711c2db9',7,7,'Kettle, red',1099,'CNY',1,'','key-21',0,'',1794851434890,1794855034890,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-5c55827df1d1b1a4','SK01M7JQPWCA000001R00000000M',1),(7,_binary'buyer-fa8cfc37711c2db9','SK01M7JQPWCA000001R00000000N',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -2, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 2, version = version + 1
		WHERE id = 7 AND version = 11 AND stock + -2 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,13,'SK01M7JQPWCA000001R00000000M',1,93,92,1,1794851434891),(7,14,'SK01M7JQPWCA000001R00000000N',1,92,91,1,1794851434891)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (2)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (16,0,1794851434891,'order.confirmed',7,'SK01M7JQPWCA000001R00000000M',''),(16,1,1794851434891,'order.confirmed',7,'SK01M7JQPWCA000001R00000000N','')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 7, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = 'sandbox' AND trade_no = 't1' AND type = 'payment'
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWCA000001R00000000M'
-- connection 1
UPDATE tb_seckill_order SET status = 1, pay_time = 1794851434892 WHERE order_no = 'SK01M7JQPWCA000001R00000000M' AND status = 0
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (17,0,1794851434892,'order.paid',7,'SK01M7JQPWCA000001R00000000M','')
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('PYHDMQ3RMD7OZBWX4HKB32SLODGI','payment','SK01M7JQPWCA000001R00000000M',7,'sandbox','t1',1099,'CNY','applied','',NULL,0,'',NULL,1794851434892,1794851434892)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = 'sandbox' AND trade_no = 't1' AND type = 'payment'
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = 'sandbox' AND trade_no = 't2' AND type = 'payment'
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWCA000001R00000000M'
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('PYM7WKI5OG5C6RDNR7CC5IDVUUSE','payment','SK01M7JQPWCA000001R00000000M',7,'sandbox','t2',1099,'CNY','excess','',NULL,0,'',NULL,1794851434894,1794851434894)
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('RFAHEQ2XJKJ3CG4Y6ED332XFJ2NU','refund','SK01M7JQPWCA000001R00000000M',7,'sandbox','t2',1099,'CNY','due','doubled','PYM7WKI5OG5C6RDNR7CC5IDVUUSE',0,'',1794851434894,NULL,1794851434894)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = 'sandbox' AND trade_no = 't3' AND type = 'payment'
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWCA000001R00000000N'
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('PY4XWPG2OCD3SSBIZH5FZS2JXBDQ','payment','SK01M7JQPWCA000001R00000000N',7,'sandbox','t3',1,'CNY','excess','',NULL,0,'',NULL,1794851434895,1794851434895)
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('RF7MO5AZNSYP245IHOB2TEHI6VDQ','refund','SK01M7JQPWCA000001R00000000N',7,'sandbox','t3',1,'CNY','due','wrong_amount','PY4XWPG2OCD3SSBIZH5FZS2JXBDQ',0,'',1794851434895,NULL,1794851434895)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = 'sandbox' AND trade_no = 't4' AND type = 'payment'
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK-of-somebody-else'
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('PYPRRXNDCOCP2QJ54EI7O3PSJGBI','payment','SK-of-somebody-else',0,'sandbox','t4',5,'CNY','excess','',NULL,0,'',NULL,1794851434896,1794851434897)
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ','refund','SK-of-somebody-else',0,'sandbox','t4',5,'CNY','due','unknown_order','PYPRRXNDCOCP2QJ54EI7O3PSJGBI',0,'',1794851434897,NULL,1794851434897)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE order_no = 'SK01M7JQPWCA000001R00000000M'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_order SET status = 4, reason = 'test', cancel_time = 1794851434898, epoch = 1, release_epoch = 1, release_time = 1794851434898
			WHERE status = 1 AND order_no IN ('SK01M7JQPWCA000001R00000000M')
-- connection 1
UPDATE tb_seckill_product SET stock = stock + 1, offered = offered + 0, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 12 AND stock + 1 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,15,'SK01M7JQPWCA000001R00000000M',1,91,92,2,1794851434898)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-5c55827df1d1b1a4','SK01M7JQPWCA000001R00000000M',-1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), order_no = GREATEST(order_no, VALUES(order_no))
-- connection 1
DELETE FROM tb_user_seckill WHERE quantity <= 0 AND product_id = 7 AND user_id IN (_binary'buyer-5c55827df1d1b1a4')
-- connection 1
UPDATE tb_user_seckill SET order_no = COALESCE((SELECT MAX(o.order_no) FROM tb_seckill_order o
			WHERE o.user_id = tb_user_seckill.user_id AND o.limit_group = tb_user_seckill.product_id AND o.status IN (0, 1)), order_no)
			WHERE product_id = 7 AND user_id IN (_binary'buyer-5c55827df1d1b1a4')
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (18,0,1794851434898,'order.refunded',7,'SK01M7JQPWCA000001R00000000M','test')
-- connection 1
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE order_no = 'SK01M7JQPWCA000001R00000000M' AND type = 'payment' AND status = 'applied'
-- connection 1
INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES ('RFQK6IOMBKHC3MG5H53CTK4F5YHY','refund','SK01M7JQPWCA000001R00000000M',7,'sandbox','t1',1099,'CNY','due','operator','PYHDMQ3RMD7OZBWX4HKB32SLODGI',0,'',1794851434898,NULL,1794851434898)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434898,'operator','order.refund',7,'SK01M7JQPWCA000001R00000000M','test','10.99 CNY')
-- connection 1
COMMIT
-- connection 2
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE status = 'due' AND next_time <= 1794851434900 AND type = 'refund' ORDER BY next_time, id LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_payment WHERE id = 'RFAHEQ2XJKJ3CG4Y6ED332XFJ2NU' AND type = 'refund'
-- connection 1
UPDATE tb_payment SET status = 'done', done_time = 1794851434901, next_time = NULL
		WHERE id = 'RFAHEQ2XJKJ3CG4Y6ED332XFJ2NU' AND type = 'refund' AND status <> 'done'
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_payment WHERE id = 'RF7MO5AZNSYP245IHOB2TEHI6VDQ' AND type = 'refund'
-- connection 1
UPDATE tb_payment SET status = 'due', attempts = attempts + 1, last_error = 'provider is away', next_time = 1794851494902
		WHERE id = 'RF7MO5AZNSYP245IHOB2TEHI6VDQ' AND type = 'refund' AND status = 'due'
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT 1 FROM tb_payment WHERE id = 'RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ' AND type = 'refund'
-- connection 1
UPDATE tb_payment SET status = 'failed', attempts = attempts + 1, last_error = 'provider says no', next_time = NULL
		WHERE id = 'RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ' AND type = 'refund' AND status = 'due'
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE id = 'RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ' AND type = 'refund'
-- connection 1
SELECT r.id FROM tb_payment r JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment' AND r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency
		WHERE r.type = 'refund' AND r.done_time IS NULL
		AND (r.status = 'failed' OR r.status = 'due' AND (r.next_time IS NULL OR r.next_time > 1794937834904)) AND r.id = 'RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ'
-- connection 1
UPDATE tb_payment SET status = 'due', attempts = 0, next_time = 1794851434904
		WHERE id = 'RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ' AND type = 'refund' AND status IN ('failed', 'due')
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434904,'operator','refund.retry',0,'','test','refund RFNMKLZCGRMIOWOAZ4RQCQH3WDUQ')
-- connection 1
COMMIT
-- connection 2
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE order_no = 'SK01M7JQPWCA000001R00000000M' ORDER BY create_time DESC, type DESC, id DESC LIMIT 10
-- connection 2
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE type = 'refund' ORDER BY create_time DESC, type DESC, id DESC LIMIT 10
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'up'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + 5, offered = offered + 5, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 13 AND stock + 5 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,16,NULL,5,92,97,3,1794851434906)
-- connection 1
INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, from_share, actor, reason, create_time, done_time)
		VALUES ('up',7,5,1,'open',0,'operator','test',1794851434906,NULL)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434906,'operator','product.stock',7,'','test','+5, change up')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'down'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, from_share, actor, reason, create_time, done_time)
		VALUES ('down',7,-5,1,'open',0,'operator','test',1794851434907,NULL)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434907,'operator','product.stock',7,'','test','-5 asked for, change down')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'refused'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, from_share, actor, reason, create_time, done_time)
		VALUES ('refused',7,-3,1,'open',0,'operator','test',1794851434909,NULL)
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434909,'operator','product.stock',7,'','test','-3 asked for, change refused')
-- connection 1
COMMIT
-- connection 2
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE status = 'open' AND 1 = 1 ORDER BY create_time, id LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'down'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
UPDATE tb_stock_change SET epoch = 1 WHERE id = 'down' AND status = 'open' AND epoch <= 1
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'up'
-- connection 1
UPDATE tb_stock_change SET status = 'done', done_time = 1794851434911 WHERE id = 'up' AND status = 'open' AND epoch = 1
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'down'
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -5, offered = offered + -5, share_left = share_left + 0,
		log_seq = log_seq + 1, version = version + 1
		WHERE id = 7 AND version = 14 AND stock + -5 >= share_left + 0 AND share_left + 0 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES (7,17,NULL,-5,97,92,3,1794851434912)
-- connection 1
UPDATE tb_stock_change SET status = 'done', done_time = 1794851434912 WHERE id = 'down' AND status = 'open' AND epoch = 1
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434912,'operator','product.stock',7,'','test','-5, change down is done')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, product_id, delta, epoch, status, from_share, actor, reason, create_time FROM tb_stock_change WHERE id = 'refused'
-- connection 1
UPDATE tb_stock_change SET status = 'refused', done_time = 1794851434913 WHERE id = 'refused' AND status = 'open' AND epoch = 1
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434913,'operator','product.stock',7,'','test','-3, change refused is refused')
-- connection 1
COMMIT
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_seckill_product SET rebuilding = 1 WHERE id = 7 AND epoch = 1
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET epoch = 2, version = version + 1, rebuilding = 1
		WHERE id = 7 AND version = 15
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434915,'operator','product.epoch',7,'','test','epoch 1 -> 2')
-- connection 1
SELECT id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 AND epoch < 2 ORDER BY epoch DESC, id LIMIT 10000
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 7 AND status IN (0, 1) AND origin = 0
-- connection 1
SELECT order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref, idem_key,
	status, reason, create_time, pay_before, pay_time, cancel_time,
	CASE WHEN origin <> 0 THEN 0
		WHEN status IN (0, 1) THEN COALESCE((SELECT p.epoch FROM tb_seckill_product p WHERE p.id = product_id), epoch) ELSE epoch END,
	shard, origin FROM tb_seckill_order WHERE product_id = 7 AND status IN (2, 3, 4) AND idem_key IS NOT NULL
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_seckill_product SET rebuilding = 0 WHERE id = 7 AND epoch = 2
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWD2000001R00000000P',_binary'buyer-98c475f0f066a9ce',7,7,'Kettle, red',1099,'CNY',1,'','key-22',0,'',1794851434914,1794855034917,NULL,1,0,0,NULL,NULL),('SK01M7JQPWD2000001R00000000Q',_binary'buyer-36fbefaa6fb125e3',7,7,'Kettle, red',1099,'CNY',1,'','key-23',0,'',1794851434914,1794855034917,NULL,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (7,_binary'buyer-98c475f0f066a9ce','SK01M7JQPWD2000001R00000000P',1),(7,_binary'buyer-36fbefaa6fb125e3','SK01M7JQPWD2000001R00000000Q',1)
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWD2000001R00000000P','SK01M7JQPWD2000001R00000000Q')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-98c475f0f066a9ce',_binary'buyer-36fbefaa6fb125e3')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-98c475f0f066a9ce' AND idem_key = 'key-22' OR user_id = _binary'buyer-36fbefaa6fb125e3' AND idem_key = 'key-23')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
INSERT INTO tb_witness (stream, seq, tag) VALUES ('b7', 8, 0)
		ON DUPLICATE KEY UPDATE tag = IF(VALUES(seq) > seq, VALUES(tag), tag), seq = GREATEST(seq, VALUES(seq))
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT id FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT order_no, status, origin FROM tb_seckill_order WHERE order_no IN ('SK01M7JQPWD2000001R00000000P')
-- connection 1
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7 AND user_id IN (_binary'buyer-98c475f0f066a9ce')
-- connection 1
SELECT user_id, idem_key, order_no FROM tb_seckill_order WHERE limit_group = 7 AND (user_id = _binary'buyer-98c475f0f066a9ce' AND idem_key = 'key-22')
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency,
			quantity, ref, idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, origin, release_epoch, release_time) VALUES ('SK01M7JQPWD2000001R00000000P',_binary'buyer-98c475f0f066a9ce',7,7,'Kettle, red',1099,'CNY',1,'','key-22',3,'units are gone',1794851434914,NULL,1794851434919,1,0,0,NULL,NULL)
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (19,0,1794851434919,'order.failed',7,'SK01M7JQPWD2000001R00000000P','units are gone')
-- connection 1
UPDATE tb_seckill_order SET release_epoch = 2, epoch = 2,
	release_time = CASE WHEN release_time >= 1794851434919 THEN release_time + 1 ELSE 1794851434919 END
	WHERE (status IN (2, 3, 4) OR origin <> 0) AND (SELECT COUNT(*) FROM tb_dead_letter l
		WHERE l.order_no = tb_seckill_order.order_no AND l.closed_time + 0 IS NULL) > 0 AND order_no IN ('SK01M7JQPWD2000001R00000000P')
-- connection 1
SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = 7 LIMIT 1
-- connection 1
COMMIT
-- connection 2
SELECT stream, seq, tag FROM tb_witness ORDER BY stream
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, limit_group FROM tb_seckill_product WHERE epoch > 0 AND strategy <> 'direct'
-- connection 1
SELECT id FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT id FROM tb_seckill_product WHERE id = 9 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET rebuilding = 1 WHERE epoch > 0 AND strategy <> 'direct'
-- connection 1
DELETE FROM tb_witness WHERE stream = 'b7' AND seq = 8 AND tag = 0
-- connection 1
COMMIT
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 2
SELECT status, epoch, shard, release_epoch IS NULL, origin, SUM(quantity) FROM tb_seckill_order
		WHERE product_id = 7 GROUP BY status, epoch, shard, release_epoch, origin
-- connection 2
SELECT shard, epoch = 2, COUNT(*), SUM(quantity), MIN(create_time) FROM tb_dead_letter
		WHERE product_id = 7 AND closed_time IS NULL GROUP BY 1, 2
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE status = 'open' AND product_id = 7
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE product_id = 7
-- connection 2
SELECT COUNT(*) FROM tb_seckill_order WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND product_id = 7
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 2
SELECT seq, order_no, quantity, before_stock, after_stock, type FROM tb_stock_log WHERE product_id = 7 ORDER BY seq
-- connection 2
SELECT order_no, quantity, status FROM tb_seckill_order WHERE product_id = 7
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 2
SELECT user_id, quantity FROM tb_seckill_order
		WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = 7) AND status IN (0, 1)
-- connection 2
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 7
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT o.order_no, o.price_cents * o.quantity, o.currency, (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'), (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency)
		FROM tb_seckill_order o WHERE o.product_id = 7 AND o.status IN (1, 4)
		AND ((SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied') <> 1 OR (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency) <> 1) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, o.product_id, p.product_id FROM tb_seckill_order o
		JOIN tb_payment p ON p.order_no = o.order_no
		WHERE o.product_id = 7 AND p.product_id <> o.product_id AND p.type <> 'refund' LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.product_id, o.product_id, o.status
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no WHERE p.product_id = 7 AND p.type = 'payment'
		AND (o.product_id <> p.product_id OR p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4))) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.status, p.product_id, r.id, r.product_id
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = 7 AND p.type = 'payment' AND (r.id IS NULL AND (p.status = 'excess' OR o.status = 4)
		OR r.id IS NOT NULL AND p.status = 'applied' AND o.status = 1 OR r.product_id <> p.product_id) LIMIT 11
-- connection 2
SELECT r.id, r.payment_id, r.order_no, r.product_id, r.provider, r.trade_no, r.amount_cents, r.currency,
		p.order_no, p.product_id, p.provider, p.trade_no, p.amount_cents, p.currency
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment'
		WHERE r.product_id = 7 AND r.type = 'refund' AND (p.id IS NULL OR NOT (r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency)) LIMIT 11
-- connection 2
SELECT id, order_no, type, status, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = 7 AND NOT (type = 'payment' AND status IN ('applied', 'excess')
			AND payment_id IS NULL AND next_time IS NULL AND done_time IS NULL
		OR type = 'refund' AND status = 'due' AND next_time IS NOT NULL AND next_time <= 1794937834926 AND done_time IS NULL
		OR type = 'refund' AND status = 'done' AND next_time IS NULL AND done_time IS NOT NULL) LIMIT 11
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 2
SELECT status, epoch, shard, release_epoch IS NULL, origin, SUM(quantity) FROM tb_seckill_order
		WHERE product_id = 8 GROUP BY status, epoch, shard, release_epoch, origin
-- connection 2
SELECT shard, epoch = 1, COUNT(*), SUM(quantity), MIN(create_time) FROM tb_dead_letter
		WHERE product_id = 8 AND closed_time IS NULL GROUP BY 1, 2
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE status = 'open' AND product_id = 8
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE product_id = 8
-- connection 2
SELECT COUNT(*) FROM tb_seckill_order WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND product_id = 8
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 2
SELECT seq, order_no, quantity, before_stock, after_stock, type FROM tb_stock_log WHERE product_id = 8 ORDER BY seq
-- connection 2
SELECT order_no, quantity, status FROM tb_seckill_order WHERE product_id = 8
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 2
SELECT user_id, quantity FROM tb_seckill_order
		WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = 8) AND status IN (0, 1)
-- connection 2
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 8
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT o.order_no, o.price_cents * o.quantity, o.currency, (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'), (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency)
		FROM tb_seckill_order o WHERE o.product_id = 8 AND o.status IN (1, 4)
		AND ((SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied') <> 1 OR (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency) <> 1) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, o.product_id, p.product_id FROM tb_seckill_order o
		JOIN tb_payment p ON p.order_no = o.order_no
		WHERE o.product_id = 8 AND p.product_id <> o.product_id AND p.type <> 'refund' LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.product_id, o.product_id, o.status
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no WHERE p.product_id = 8 AND p.type = 'payment'
		AND (o.product_id <> p.product_id OR p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4))) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.status, p.product_id, r.id, r.product_id
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = 8 AND p.type = 'payment' AND (r.id IS NULL AND (p.status = 'excess' OR o.status = 4)
		OR r.id IS NOT NULL AND p.status = 'applied' AND o.status = 1 OR r.product_id <> p.product_id) LIMIT 11
-- connection 2
SELECT r.id, r.payment_id, r.order_no, r.product_id, r.provider, r.trade_no, r.amount_cents, r.currency,
		p.order_no, p.product_id, p.provider, p.trade_no, p.amount_cents, p.currency
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment'
		WHERE r.product_id = 8 AND r.type = 'refund' AND (p.id IS NULL OR NOT (r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency)) LIMIT 11
-- connection 2
SELECT id, order_no, type, status, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = 8 AND NOT (type = 'payment' AND status IN ('applied', 'excess')
			AND payment_id IS NULL AND next_time IS NULL AND done_time IS NULL
		OR type = 'refund' AND status = 'due' AND next_time IS NOT NULL AND next_time <= 1794937834934 AND done_time IS NULL
		OR type = 'refund' AND status = 'done' AND next_time IS NULL AND done_time IS NOT NULL) LIMIT 11
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9
-- connection 2
SELECT status, epoch, shard, release_epoch IS NULL, origin, SUM(quantity) FROM tb_seckill_order
		WHERE product_id = 9 GROUP BY status, epoch, shard, release_epoch, origin
-- connection 2
SELECT shard, epoch = 1, COUNT(*), SUM(quantity), MIN(create_time) FROM tb_dead_letter
		WHERE product_id = 9 AND closed_time IS NULL GROUP BY 1, 2
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE status = 'open' AND product_id = 9
-- connection 2
SELECT COUNT(*) FROM tb_stock_change WHERE product_id = 9
-- connection 2
SELECT COUNT(*) FROM tb_seckill_order WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND product_id = 9
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9
-- connection 2
SELECT seq, order_no, quantity, before_stock, after_stock, type FROM tb_stock_log WHERE product_id = 9 ORDER BY seq
-- connection 2
SELECT order_no, quantity, status FROM tb_seckill_order WHERE product_id = 9
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 9
-- connection 2
SELECT user_id, quantity FROM tb_seckill_order
		WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = 9) AND status IN (0, 1)
-- connection 2
SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = 9
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT o.order_no, o.price_cents * o.quantity, o.currency, (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'), (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency)
		FROM tb_seckill_order o WHERE o.product_id = 9 AND o.status IN (1, 4)
		AND ((SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied') <> 1 OR (SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied' AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency) <> 1) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, o.product_id, p.product_id FROM tb_seckill_order o
		JOIN tb_payment p ON p.order_no = o.order_no
		WHERE o.product_id = 9 AND p.product_id <> o.product_id AND p.type <> 'refund' LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.product_id, o.product_id, o.status
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no WHERE p.product_id = 9 AND p.type = 'payment'
		AND (o.product_id <> p.product_id OR p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4))) LIMIT 11
-- connection 2
SELECT p.id, p.order_no, p.status, p.product_id, r.id, r.product_id
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = 9 AND p.type = 'payment' AND (r.id IS NULL AND (p.status = 'excess' OR o.status = 4)
		OR r.id IS NOT NULL AND p.status = 'applied' AND o.status = 1 OR r.product_id <> p.product_id) LIMIT 11
-- connection 2
SELECT r.id, r.payment_id, r.order_no, r.product_id, r.provider, r.trade_no, r.amount_cents, r.currency,
		p.order_no, p.product_id, p.provider, p.trade_no, p.amount_cents, p.currency
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment'
		WHERE r.product_id = 9 AND r.type = 'refund' AND (p.id IS NULL OR NOT (r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency)) LIMIT 11
-- connection 2
SELECT id, order_no, type, status, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = 9 AND NOT (type = 'payment' AND status IN ('applied', 'excess')
			AND payment_id IS NULL AND next_time IS NULL AND done_time IS NULL
		OR type = 'refund' AND status = 'due' AND next_time IS NOT NULL AND next_time <= 1794937834939 AND done_time IS NULL
		OR type = 'refund' AND status = 'done' AND next_time IS NULL AND done_time IS NOT NULL) LIMIT 11
-- connection 2
ROLLBACK
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 7
-- connection 2
SELECT order_no, user_id, quantity, idem_key, status, origin, limit_group, shard,
	release_epoch IS NULL, release_time IS NULL, pay_before IS NULL FROM tb_seckill_order
	WHERE product_id = 7 AND (status NOT IN (2, 3, 4) OR idem_key IS NOT NULL OR release_epoch IS NOT NULL OR release_time IS NOT NULL)
-- connection 2
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
SELECT id FROM tb_seckill_product WHERE id = 7 FOR UPDATE
-- connection 1
SELECT user_id, SUM(live), SUM(recorded), COALESCE(MAX(live_no), '') FROM
		(SELECT user_id, quantity AS live, 0 AS recorded, order_no AS live_no FROM tb_seckill_order
			WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = 7) AND status IN (0, 1)
		UNION ALL
		SELECT user_id, 0, quantity, NULL FROM tb_user_seckill WHERE product_id = 7) AS units
		GROUP BY user_id HAVING SUM(live) <> SUM(recorded) OR SUM(live) > 9223372036854775807 LIMIT 10
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT r.id FROM tb_payment r JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment' AND r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency
		WHERE r.type = 'refund' AND r.done_time IS NULL
		AND (r.status = 'failed' OR r.status = 'due' AND (r.next_time IS NULL OR r.next_time > 1794937834942)) AND r.product_id = 7 LIMIT 10
-- connection 1
SELECT id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id FROM tb_payment WHERE id IN (SELECT id FROM (
		SELECT p.id FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no
		WHERE p.product_id = 7 AND p.type = 'payment' AND (p.status = 'excess' OR o.status IN (2, 3, 4))
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.payment_id = p.id)
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.provider = p.provider AND r.trade_no = p.trade_no AND r.type = 'refund')
		LIMIT 10) AS kept)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_reconciliation (product_id, create_time, balanced, body) VALUES (7, 1794851434943, 1, _binary'{}')
-- connection 1
COMMIT
-- connection 2
SELECT id, product_id, create_time, balanced, body FROM tb_reconciliation WHERE product_id = 7 ORDER BY id DESC LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8 FOR UPDATE
-- connection 1
UPDATE tb_seckill_product SET state = 2, version = version + 1 WHERE id = 8
-- connection 1
UPDATE tb_seckill_product SET ended_time = 1794851434945 WHERE id = 8 AND ended_time IS NULL
-- connection 1
INSERT INTO tb_event_batch (events) VALUES (1)
-- connection 1
INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES (20,0,1794851434945,'sale.ended',8,NULL,'')
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434945,'operator','product.end',8,'','test','')
-- connection 1
COMMIT
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product WHERE id = 8
-- connection 2
SELECT p.id FROM tb_seckill_product p WHERE p.epoch > 0 AND p.ended_time IS NOT NULL AND NOT EXISTS (
		SELECT 1 FROM tb_reconciliation r WHERE r.product_id = p.id AND r.create_time > p.ended_time)
		ORDER BY p.ended_time, p.id LIMIT 10
-- connection 2
SELECT id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, share_left, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, shard_key FROM tb_seckill_product ORDER BY id
-- connection 2
SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1
-- connection 1
START TRANSACTION
-- connection 1
SELECT last_id FROM tb_feed WHERE id = 1 FOR UPDATE
-- connection 1
SELECT id, events FROM tb_event_batch FORCE INDEX (uk_event_batch_last) WHERE last_id IS NULL ORDER BY id LIMIT 1000
-- connection 1
INSERT INTO tb_event_batch (id, events, last_id) VALUES (1,1,1),(2,4,5),(3,2,7),(4,1,8),(5,1,9),(6,5,14),(7,1,15),(8,1,16),(9,1,17),(10,1,18),(11,1,19),(12,1,20),(13,3,23),(14,3,26),(15,1,27),(16,2,29),(17,1,30),(18,1,31),(19,1,32),(20,1,33) ON DUPLICATE KEY UPDATE last_id = VALUES(last_id)
-- connection 1
UPDATE tb_feed SET last_id = 33 WHERE id = 1
-- connection 1
COMMIT
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, events, last_id FROM tb_event_batch WHERE last_id > 0 ORDER BY last_id LIMIT 10
-- connection 2
SELECT e.batch_id, e.place, e.create_time, e.event, e.product_id, e.order_no, e.reason,
			o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref
			FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no WHERE e.batch_id IN (1,2,3,4,5,6) ORDER BY e.batch_id, e.place
-- connection 2
ROLLBACK
-- connection 2
SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, events, last_id FROM tb_event_batch WHERE last_id > 10 ORDER BY last_id LIMIT 10
-- connection 2
SELECT e.batch_id, e.place, e.create_time, e.event, e.product_id, e.order_no, e.reason,
			o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref
			FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no WHERE e.batch_id IN (6,7,8,9,10,11,12) ORDER BY e.batch_id, e.place
-- connection 2
ROLLBACK
-- connection 2
SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, events, last_id FROM tb_event_batch WHERE last_id > 20 ORDER BY last_id LIMIT 10
-- connection 2
SELECT e.batch_id, e.place, e.create_time, e.event, e.product_id, e.order_no, e.reason,
			o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref
			FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no WHERE e.batch_id IN (13,14,15,16,17) ORDER BY e.batch_id, e.place
-- connection 2
ROLLBACK
-- connection 2
SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, events, last_id FROM tb_event_batch WHERE last_id > 30 ORDER BY last_id LIMIT 10
-- connection 2
SELECT e.batch_id, e.place, e.create_time, e.event, e.product_id, e.order_no, e.reason,
			o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref
			FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no WHERE e.batch_id IN (18,19,20) ORDER BY e.batch_id, e.place
-- connection 2
ROLLBACK
-- connection 2
SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1
-- connection 2
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- connection 2
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY
-- connection 2
SELECT id, events, last_id FROM tb_event_batch WHERE last_id > 33 ORDER BY last_id LIMIT 10
-- connection 2
ROLLBACK
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (1794851434952,'operator','product.preheat',7,'','','')
-- connection 1
COMMIT
-- connection 2
SELECT id, create_time, actor, action, product_id, order_no, reason, detail FROM tb_audit WHERE product_id = 7 ORDER BY id DESC LIMIT 10
-- connection 2
SELECT 1 FROM tb_lease WHERE name = 'expire' AND holder <> 'one' AND until_time > 1794851434953 AND until_time <= 1794851554953
-- connection 1
START TRANSACTION
-- connection 1
UPDATE tb_lease SET holder = 'one', until_time = 1794851494953 WHERE name = 'expire' AND (holder = 'one' OR until_time <= 1794851434953 OR until_time > 1794851554953)
-- connection 1
INSERT INTO tb_lease (name, holder, until_time) SELECT 'expire', 'one', 1794851494953 FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_lease WHERE name = 'expire')
-- connection 1
COMMIT
-- connection 2
SELECT 1 FROM tb_lease WHERE name = 'expire' AND holder <> 'other' AND until_time > 1794851434954 AND until_time <= 1794851554954
-- connection 1
START TRANSACTION
-- connection 1
DELETE FROM tb_lease WHERE name = 'expire' AND holder = 'one'
-- connection 1
COMMIT
-- connection 2
SELECT identity FROM tb_store WHERE id = 1
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_store (id, identity) SELECT 1, '5b3b22a55be4f71450fcee10eedf9db4' FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_store WHERE id = 1)
-- connection 1
COMMIT
-- connection 2
SELECT identity FROM tb_store WHERE id = 1
-- connection 1
START TRANSACTION
-- connection 1
SELECT outcome, until_time FROM tb_spent WHERE id = _binary'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
-- connection 1
INSERT INTO tb_spent (id, outcome, until_time) VALUES (_binary'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', 1, 1794851434956)
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
SELECT outcome, until_time FROM tb_spent WHERE id = _binary'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
-- connection 1
UPDATE tb_spent SET outcome = 1, until_time = 1794851434957 WHERE id = _binary'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' AND until_time <= 1794851434957
-- connection 1
COMMIT
-- connection 2
SELECT id FROM tb_spent WHERE until_time <= 1794851434958 ORDER BY until_time LIMIT 10
-- connection 1
START TRANSACTION
-- connection 1
DELETE FROM tb_spent WHERE until_time <= 1794851434958 AND id IN (_binary'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0')
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
DELETE FROM tb_lease WHERE name = 'ping' AND holder = ''
-- connection 1
ROLLBACK
