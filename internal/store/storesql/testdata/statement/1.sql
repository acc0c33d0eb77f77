-- What a program of version 1 says. None ever ran on MariaDB: versions 1 and 2 came to it at once. This is what that of
-- SQLite said of one order and one change of stock.
-- connection 1
SET sql_mode='STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_product (id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback_share, state, epoch, version, log_seq, rebuilding, create_time)
	VALUES (9,'','Kettle',999,'CNY',10,10,1,9,1,2,1,'async',0,0,1,1,0,0,1)
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time)
	VALUES (9,1,NULL,10,0,10,3,1)
-- connection 1
UPDATE tb_seckill_product SET log_seq = 1 WHERE id = 9
-- connection 1
COMMIT
-- connection 1
START TRANSACTION
-- connection 1
INSERT INTO tb_seckill_order (order_no, user_id, product_id, limit_group, product_name, price_cents, currency, quantity, ref,
	idem_key, status, reason, create_time, pay_before, cancel_time, epoch, shard, release_epoch, release_time)
	VALUES ('SK01J00000000000000000000001','b',9,9,'Kettle',999,'CNY',1,'',NULL,0,'',1,2,NULL,1,0,NULL,NULL)
-- connection 1
UPDATE tb_seckill_product SET stock = stock + -1, offered = offered + 0, log_seq = log_seq + 1, version = version + 1
	WHERE id = 9 AND version = 1 AND stock + -1 >= 0
-- connection 1
INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time)
	VALUES (9,2,'SK01J00000000000000000000001',1,10,9,1,1)
-- connection 1
INSERT INTO tb_user_seckill (product_id, user_id, order_no, quantity) VALUES (9,'b','SK01J00000000000000000000001',1)
-- connection 1
COMMIT
-- connection 1
INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, actor, reason, create_time, done_time)
	VALUES ('c',9,-1,1,'open','operator','',1,NULL)
-- connection 1
SELECT status, epoch, shard, release_epoch IS NULL, SUM(quantity) FROM tb_seckill_order WHERE product_id = 9
	GROUP BY status, epoch, shard, release_epoch
