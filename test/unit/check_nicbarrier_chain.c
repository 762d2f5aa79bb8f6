/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The bytes of work requests for mlx5 adapters. What chains of them come to is seen in
 *  check_nicbarrier_mlx5. */
#include "common/config.h"

#include <string.h>

#if OMPI_NIC_HAVE_MLX5DV
#include <infiniband/mlx5dv.h>
#endif

#include "coll_nicbarrier/engines/mlx5/chain.h"
#include "test/unit/unit.h"

static const nicbarrier_wqe_place_t place = {.qpn = 0x123456, .index = 0xfedc};
static const nicbarrier_wqe_word_t word = {.addr = 0x1122334455667780, .key = 0x99aabbcc};

START_TEST(the_bytes_of_a_wait)
{
    static const unsigned char golden[NICBARRIER_WQE_BYTES] = {
        0x01, 0xfe, 0xdc, 0x0f, 0x12, 0x34, 0x56, 3,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0x14, 0x99, 0xaa, 0xbb, 0xcc,
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x80, 0x01, 0x02, 0x03, 0x04,
        0x05, 0x06, 0x07, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    nicbarrier_wqe_t wqe;

    nicbarrier_wqe_wait(&wqe, place, word, 0x0102030405060708);
    ck_assert_mem_eq(wqe.bytes, golden, sizeof(golden));
}
END_TEST

/** What the vendor's header makes of the same fields, where there is one. */
START_TEST(the_bytes_are_those_of_the_header)
{
#if OMPI_NIC_HAVE_MLX5DV
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_raddr_seg far;
        struct mlx5_wqe_inl_data_seg data;
        uint32_t value[2];
    } write;
    nicbarrier_wqe_t wqe;

    memset(&write, 0, sizeof(write));
    mlx5dv_set_ctrl_seg(&write.ctrl, place.index, MLX5_OPCODE_RDMA_WRITE, 0, place.qpn,
                        MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
    write.far = (struct mlx5_wqe_raddr_seg){htobe64(word.addr), htobe32(word.key), 0};
    write.data.byte_count = htobe32(MLX5_INLINE_SEG | 8);
    write.value[1] = htobe32(77);
    nicbarrier_wqe_write(&wqe, place, word, 77);
    ck_assert_mem_eq(wqe.bytes, &write, sizeof(write));
    mlx5dv_set_ctrl_seg(&write.ctrl, place.index, 0x0f, 1, place.qpn, 0, 3, 0, 0);
    nicbarrier_wqe_wait(&wqe, place, word, 77);
    ck_assert_mem_eq(wqe.bytes, &write.ctrl, sizeof(write.ctrl));
    ck_assert_uint_eq(MLX5_SEND_WQE_BB, NICBARRIER_WQE_BYTES);
#endif
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_chain", UNIT_ONCE(the_bytes_are_those_of_the_header),
                    UNIT_ONCE(the_bytes_of_a_wait));
}
